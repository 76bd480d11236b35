// Bad input: a clear message, status 1, nothing left behind (issue 2, last paragraph; interface.md 1 and 4).
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <jvmti.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

namespace fs = std::filesystem;

class OptionsTest : public JavaTest {
 protected:
  JavaRun quiet(const std::string& options) const {
    return JavaRun{oldest_jdk(), {"-XX:+UseSerialGC"}, options, {"Quiet", "10"}, "", 60};
  }

  // Files in the test's folder that the fixture did not put there.
  std::set<std::string> left_files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder())) names.insert(entry.path().filename().string());
    for (const char* own : {"command", "stdout", "stderr"}) names.erase(own);
    return names;
  }

  // The start failed with status 1 and one of our messages says each of these words.
  void expect_refused(const ProcessResult& result, const std::vector<std::string>& words) {
    expect_status(result, 1);
    EXPECT_EQ(result.out.find("quiet:"), std::string::npos) << "the application ran";
    EXPECT_TRUE(lines_with(result.out, "classaccess:").empty()) << "ours on standard output: " << result.out;
    std::vector<std::string> ours = lines_with(result.err, "classaccess: ");
    ASSERT_FALSE(ours.empty()) << result.err;
    std::string all;
    for (const std::string& line : ours) all += line + "\n";
    for (const std::string& word : words) EXPECT_NE(all.find(word), std::string::npos) << word << " in: " << all;
  }
};

struct BadOptions {
  const char* name;
  const char* options;
  std::vector<std::string> words;
};

std::ostream& operator<<(std::ostream& out, const BadOptions& bad) { return out << bad.options; }

class Refused : public OptionsTest, public ::testing::WithParamInterface<BadOptions> {};

TEST_P(Refused, NamesTheOption) {
  expect_refused(run(quiet(GetParam().options)), GetParam().words);
  EXPECT_EQ(left_files(), std::set<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(
    Options, Refused,
    ::testing::Values(
        BadOptions{"UnknownKey", "clases=Foo,out=x.db", {"clases", "classes", "threads", "overwrite", "help"}},
        BadOptions{"UnknownKeyLater", "classes=Foo,bar=1,out=x.db", {"bar", "classes"}},
        BadOptions{"NoKey", "Foo,out=x.db", {"Foo"}},
        BadOptions{"Twice", "classes=Foo,out=x.db,classes=Bar", {"classes"}},
        BadOptions{"OutTwice", "out=x.db,out=y.db", {"out"}},
        BadOptions{"EventsWord", "events=many,out=x.db", {"events", "many"}},
        BadOptions{"EventsNegative", "events=-1,out=x.db", {"events"}},
        BadOptions{"EventsEmpty", "events=,out=x.db", {"events"}},
        BadOptions{"EventsHuge", "events=99999999999999999999999,out=x.db", {"events"}},
        BadOptions{"EventsTail", "events=10x,out=x.db", {"events"}},
        BadOptions{"ValuesWord", "values=maybe,out=x.db", {"values", "maybe"}},
        BadOptions{"OverwriteNumber", "overwrite=1,out=x.db", {"overwrite"}},
        BadOptions{"HeapWord", "heap=middle,out=x.db", {"heap", "middle"}},
        BadOptions{"HeapNotHex", "heap=10-zz,out=x.db", {"heap"}},
        BadOptions{"HeapBackwards", "heap=2000-1000,out=x.db", {"heap"}},
        BadOptions{"ProtectWord", "protect=magic,out=x.db", {"protect", "magic"}},
        BadOptions{"LogWord", "log=loud,out=x.db", {"log", "loud"}}, BadOptions{"OutEmpty", "out=", {"out"}},
        BadOptions{"QuoteOpen", "out=\"x.db", {"out"}},
        BadOptions{"FileMissing", "@/no/such/options", {"/no/such/options"}},
        BadOptions{"FolderMissing", "out=/no/such/folder/x.db", {"out", "/no/such/folder"}},
        BadOptions{"OutIsFolder", "out=/tmp", {"out", "/tmp"}},
        BadOptions{"OutUnwritable", "out=/proc/x.db", {"out", "/proc/x.db"}},
        BadOptions{"OffWithoutCalls", "mode=off,out=x.db", {"mode", "calls="}},
        BadOptions{"PageWithoutPages", "page=64k,out=x.db", {"page", "mode=pages"}},
        BadOptions{"Window", "mode=pages,window=0,out=x.db", {"window", "'0'", "1 to 16384"}},
        BadOptions{"CallsWithoutMethod", "calls=total,out=x.db", {"calls", "'total'"}},
        BadOptions{"UnknownStart", "start=later,out=x.db", {"start"}}),
    [](const auto& param) { return param.param.name; });

TEST_F(OptionsTest, ExistingFileIsKept) {
  std::ofstream(path("run.db")) << "precious";
  expect_refused(run(quiet("out=run.db")), {"out", "run.db", "overwrite"});
  EXPECT_EQ(read_text(path("run.db")), "precious");
  EXPECT_EQ(left_files(), std::set<std::string>{"run.db"});

  expect_status(run(quiet("classes=Quiet*,out=run.db,overwrite=on")), 7);
  Database db(path("run.db"), true);
  db.expect_whole();
  EXPECT_GT(db.integer("SELECT count(*) FROM access"), 0);
  EXPECT_EQ(left_files(), std::set<std::string>{"run.db"});
}

TEST_F(OptionsTest, HelpEndsWithStatusZero) {
  ProcessResult result = run(quiet("help"));
  expect_status(result, 0);
  EXPECT_EQ(result.out, "");
  for (const char* key : {"classes", "heap", "out", "overwrite", "events", "values", "threads", "protect", "log"}) {
    EXPECT_NE(result.err.find(key), std::string::npos) << key;
  }
  EXPECT_EQ(left_files(), std::set<std::string>{});
}

TEST_F(OptionsTest, DefaultFileIsNamedAfterTheProcess) {
  ProcessResult result = run(quiet("classes=Quiet*"));
  expect_status(result, 7);
  EXPECT_EQ(lines_with(result.err, "classaccess: ").size(), 0u) << result.err;
  std::set<std::string> files = left_files();
  ASSERT_EQ(files.size(), 1u);
  Database db(path(*files.begin()), true);
  EXPECT_EQ(*files.begin(), "classaccess-" + db.text("SELECT pid FROM run") + ".db");
  EXPECT_EQ(db.integer("PRAGMA application_id"), 0x434C4143);
  EXPECT_EQ(db.integer("PRAGMA user_version"), 1);
  EXPECT_NE(db.text("SELECT jvm_version FROM run").find(std::to_string(oldest_jdk().major)), std::string::npos);
  EXPECT_NE(db.text("SELECT gc FROM run").find("erial"), std::string::npos);
}

TEST_F(OptionsTest, QuotesAndOptionFile) {
  std::ofstream(path("options.txt")) << "classes=Quiet$Cell\nout=\"a,b.db\"\nevents=5\n";
  expect_status(run(quiet("@options.txt")), 7);
  Database db(path("a,b.db"), true);
  ASSERT_TRUE(db.is_open()) << db.error();
  EXPECT_EQ(db.integer("SELECT count(*) FROM access"), 5);
  EXPECT_EQ(db.text("SELECT group_concat(DISTINCT c.name) FROM access_count a JOIN class c ON c.id = a.class_id"),
            "Quiet$Cell");
}

TEST_F(OptionsTest, PatternWithoutClassIsReportedOnce) {
  ProcessResult result = run(quiet("classes=No.Such.Thing,Quiet*,Nowhere.**,out=run.db"));
  expect_status(result, 7);
  EXPECT_NE(result.out.find("quiet:"), std::string::npos);
  std::string ours;
  for (const std::string& line : lines_with(result.err, "classaccess: ")) ours += line + "\n";
  for (const char* pattern : {"No.Such.Thing", "Nowhere.**"}) {
    size_t first = ours.find(pattern);
    EXPECT_NE(first, std::string::npos) << pattern << " in: " << result.err;
    EXPECT_EQ(ours.find(pattern, first + 1), std::string::npos) << "twice: " << ours;
  }
  EXPECT_EQ(ours.find("Quiet"), std::string::npos) << ours;
  Database db(path("run.db"), true);
  EXPECT_GT(db.integer("SELECT count(*) FROM access"), 0);
}

TEST_F(OptionsTest, SecondAgentIsRefused) {
  JavaRun java = quiet("classes=Quiet*,out=first.db");
  java.flags.push_back("-agentpath:" + agent_library() + "=classes=Quiet*,out=second.db");
  ProcessResult result = run(java);
  expect_refused(result, {});
  EXPECT_EQ(lines_with(result.err, "classaccess: ").size(), 1u) << "one message: " << result.err;
  EXPECT_EQ(left_files(), std::set<std::string>{}) << "nothing is half created";
}

TEST_F(OptionsTest, SameOutputAsWithout) {
  for (const Jdk& jdk : installed_jdks()) {
    JavaRun java = quiet("classes=Quiet*,out=" + jdk.name + ".db");
    java.jdk = jdk;
    ProcessResult traced = run(java);
    java.agent_options.reset();
    ProcessResult plain = run(java);
    expect_status(plain, 7);
    expect_status(traced, 7);
    EXPECT_EQ(traced.out, plain.out);
    EXPECT_EQ(traced.err, plain.err);
  }
}

// A JVM that answers no environment and exports no vmStructs.
jint JNICALL no_environment(JavaVM*, void** env, jint) {
  *env = nullptr;
  return JNI_EVERSION;
}

TEST_F(OptionsTest, NotHotSpotIsRefused) {
  pid_t child = fork();
  if (child == 0) {
    if (chdir(folder().c_str()) != 0 || freopen("stderr", "w", stderr) == nullptr) _exit(90);
    void* library = dlopen(agent_library().c_str(), RTLD_NOW);
    if (library == nullptr) _exit(91);
    auto on_load = reinterpret_cast<jint (*)(JavaVM*, char*, void*)>(dlsym(library, "Agent_OnLoad"));
    if (on_load == nullptr) _exit(92);
    JNIInvokeInterface_ table{};
    table.GetEnv = no_environment;
    JavaVM vm{&table};
    char options[] = "classes=Foo,out=run.db";
    alarm(30);
    jint result = on_load(&vm, options, nullptr);
    fflush(stderr);
    _exit(result == JNI_OK ? 93 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(lines_with(read_text(path("stderr")), "classaccess: ").size(), 1u) << read_text(path("stderr"));
  EXPECT_EQ(left_files(), std::set<std::string>{});
}

}  // namespace
}  // namespace classaccess
