#include "agent/jvmti/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace classaccess {
namespace {

Options parsed(const std::string& text) {
  Options options;
  EXPECT_EQ("", parse_options(text.c_str(), &options)) << text;
  return options;
}

// The message, after checking what holds for all of them: one line, short enough for
// raw_log, lists the valid options, and *out is as it was.
std::string refused(const std::string& text) {
  Options options;
  options.out = "untouched";
  std::string message = parse_options(text.c_str(), &options);
  EXPECT_NE("", message) << text;
  EXPECT_NE(std::string::npos, message.find("; valid options: classes, heap, out, overwrite,")) << message;
  EXPECT_NE(std::string::npos, message.find("help, @FILE")) << message;
  EXPECT_EQ(std::string::npos, message.find('\n')) << message;
  EXPECT_LT(message.size(), 900u);
  EXPECT_EQ("untouched", options.out);
  return message;
}

void expect_refused(const std::string& text, const std::string& part) {
  std::string message = refused(text);
  EXPECT_NE(std::string::npos, message.find(part)) << text << " -> " << message;
}

using Strings = std::vector<std::string>;

class OptionFile {
 public:
  explicit OptionFile(const std::string& content, const std::string& suffix = "") {
    path_ = testing::TempDir() + "options_test." + std::to_string(getpid()) + suffix;
    std::ofstream(path_) << content;
  }
  ~OptionFile() { unlink(path_.c_str()); }
  std::string at() const { return "@" + path_; }

 private:
  std::string path_;
};

TEST(Options, DefaultsAreThoseOfTheContract) {
  for (const char* text : {static_cast<const char*>(nullptr), ""}) {
    Options options;
    options.values = true;
    EXPECT_EQ("", parse_options(text, &options));
    EXPECT_TRUE(options.classes.empty());
    EXPECT_TRUE(options.threads.empty());
    EXPECT_EQ(HeapScope::kAll, options.heap);
    EXPECT_EQ("classaccess-%p.db", options.out);
    EXPECT_FALSE(options.overwrite);
    EXPECT_EQ(1000000u, options.max_events);
    EXPECT_FALSE(options.values);
    EXPECT_EQ(ProtectChoice::kAuto, options.protect);
    EXPECT_EQ(LogLevel::kWarn, options.log_level);
    EXPECT_EQ("", options.log_file);
    EXPECT_FALSE(options.help);
    EXPECT_EQ("", options.text);
  }
}

TEST(Options, EveryOptionIsRead) {
  std::string text =
      "classes=com.acme.**,!com.acme.Order,heap=1000-0x2000,out=a%%-%p.db,overwrite=on,events=17,values=on,"
      "protect=mprotect,threads=main,worker-*,log=debug:agent.log,mode=access,twin=on,probes=off,start=now";
  Options options = parsed(text);
  EXPECT_EQ((Strings{"com.acme.**", "!com.acme.Order"}), options.classes);
  EXPECT_EQ((Strings{"main", "worker-*"}), options.threads);
  EXPECT_EQ(HeapScope::kRange, options.heap);
  EXPECT_EQ(0x1000u, options.heap_low);
  EXPECT_EQ(0x2000u, options.heap_high);
  EXPECT_EQ("a%%-%p.db", options.out);
  EXPECT_TRUE(options.overwrite);
  EXPECT_EQ(17u, options.max_events);
  EXPECT_TRUE(options.values);
  EXPECT_EQ(ProtectChoice::kMprotect, options.protect);
  EXPECT_EQ(LogLevel::kDebug, options.log_level);
  EXPECT_EQ("agent.log", options.log_file);
  EXPECT_EQ(text, options.text);
}

TEST(Options, APieceWithoutEqualSignContinuesTheList) {
  Options options = parsed("classes=Foo,Bar,out=x.db");
  EXPECT_EQ((Strings{"Foo", "Bar"}), options.classes);
  EXPECT_EQ("x.db", options.out);
  expect_refused("out=x.db,Bar", "option 'out' takes one value, 'Bar' follows it");
  expect_refused("Foo,classes=Bar", "unknown option 'Foo'");
}

TEST(Options, HeapScopes) {
  EXPECT_EQ(HeapScope::kAll, parsed("heap=all").heap);
  EXPECT_EQ(HeapScope::kOld, parsed("heap=old").heap);
  EXPECT_EQ(HeapScope::kYoung, parsed("heap=young").heap);
  EXPECT_EQ(0xffffffffffffffffu, parsed("heap=0-ffffffffffffffff").heap_high);
  for (const char* bad : {"heap=eden", "heap=12", "heap=-", "heap=1-", "heap=-2", "heap=1-2-3", "heap=xx-yy",
                          "heap=1-10000000000000000", "heap=0x-0x1"}) {
    expect_refused(bad, "option 'heap': '");
  }
  expect_refused("heap=20-20", "LO must be below HI");
}

TEST(Options, EventCounts) {
  EXPECT_EQ(0u, parsed("events=off").max_events);
  EXPECT_EQ(0u, parsed("events=0").max_events);
  EXPECT_EQ(UINT64_MAX, parsed("events=all").max_events);
  for (const char* bad : {"events=-1", "events=1k", "events= 1", "events=0x10", "events=99999999999999999999"}) {
    expect_refused(bad, "option 'events': '");
  }
}

TEST(Options, LogLevels) {
  EXPECT_EQ(LogLevel::kError, parsed("log=error").log_level);
  EXPECT_EQ(LogLevel::kInfo, parsed("log=info").log_level);
  EXPECT_EQ("a:b", parsed("log=warn:a:b").log_file);
  expect_refused("log=verbose", "option 'log': 'verbose' is not one of error, warn, info, debug");
  expect_refused("log=debug:", "option 'log': the file name after ':' is missing");
}

TEST(Options, QuotesHideCommasAndEqualSigns) {
  EXPECT_EQ("a,b=c.db", parsed("out=\"a,b=c.db\"").out);
  EXPECT_EQ("a\"b\\c", parsed("out=\"a\\\"b\\\\c\"").out);
  EXPECT_EQ("a\"b", parsed("out=a\"b").out);
  Options options = parsed("threads=\"a,b=c\",\"d=e\",f,classes=\"Foo,Bar\",Baz");
  EXPECT_EQ((Strings{"a,b=c", "d=e", "f"}), options.threads);
  EXPECT_EQ((Strings{"Foo", "Bar", "Baz"}), options.classes);
  expect_refused("out=\"a,values=on", "a quote is not closed");
  expect_refused("out=\"a\"b", "text behind the closing quote");
  expect_refused("out=\"a\\\"", "a quote is not closed");
}

TEST(Options, UnknownDuplicateAndEmptyAreRefusedByName) {
  expect_refused("clases=Foo", "unknown option 'clases'");
  expect_refused("Classes=Foo", "unknown option 'Classes'");
  expect_refused("classes=Foo,bar=x", "unknown option 'bar'");
  expect_refused("=x", "there is no option in front of the = in '=x': write KEY=VALUE; valid options: ");
  expect_refused("help=1", "option 'help' takes no value, not '1'");
  expect_refused("values=on,values=on", "option 'values' is given twice");
  expect_refused("classes=A,out=x,classes=B", "option 'classes' is given twice");
  expect_refused("classes=", "option 'classes': the value is empty");
  expect_refused("out=,values=on", "option 'out': the value is empty");
  expect_refused("out=\"\"", "option 'out': the value is empty");
  expect_refused("classes=Foo,,Bar", "an empty piece");
  expect_refused("classes=Foo,", "an empty piece");
  expect_refused(",", "an empty piece");
}

TEST(Options, MalformedValuesAreRefusedByName) {
  expect_refused("values=yes", "option 'values': 'yes' is not one of on, off");
  expect_refused("overwrite=ON", "option 'overwrite': 'ON' is not one of on, off");
  expect_refused("protect=none", "option 'protect': 'none' is not one of auto, pkey, mprotect");
  expect_refused("out=100%.db", "option 'out': '100%.db' has a %");
  expect_refused("out=x%", "option 'out': 'x%' has a %");
  expect_refused("classes=com.acme.", "option 'classes': 'com.acme.' is no class pattern: it ends with a dot");
  expect_refused("classes=A++", "option 'classes': 'A++' is no class pattern: one + at its end takes the subclasses");
  expect_refused("classes=A B", "option 'classes': 'A B' is no class pattern: it has a blank: classes are separated");
  expect_refused("classes=Foo,!", "option 'classes': '!' is no class pattern");
}

TEST(Options, Words) {
  EXPECT_FALSE(parsed("mode=access,twin=off,probes=off,start=now").manual);
  EXPECT_TRUE(parsed("start=manual").manual);
  expect_refused("start=later", "option 'start': 'later' is not one of now, manual");
  expect_refused("mode=x", "option 'mode': 'x' is not one of access");
  expect_refused("probes=maybe", "option 'probes': 'maybe' is not one of on, off");
}

TEST(Options, ThePageModel) {
  EXPECT_EQ(Mode::kAccess, parsed("").mode);
  Options options = parsed("mode=pages");
  EXPECT_EQ(Mode::kPages, options.mode);
  EXPECT_EQ(4096u, options.page_bytes);
  EXPECT_EQ(1u, options.window);
  EXPECT_FALSE(options.probes);
  options = parsed("page=2m,mode=pages,window=16384");
  EXPECT_EQ(2u << 20, options.page_bytes);
  EXPECT_EQ(16384u, options.window);
  EXPECT_EQ(65536u, parsed("mode=pages,page=64k").page_bytes);
  for (const char* bad : {"page=4096", "page=1m", "page=4K"}) expect_refused(bad, "is not one of 4k, 64k, 2m");
  for (const char* bad : {"window=0", "window=16385", "window=-1", "window=2x", "window=99999999999999999999"}) {
    expect_refused(std::string("mode=pages,") + bad, "option 'window': '");
  }
}

TEST(Options, AnOptionOfTheOtherModeIsRefused) {
  for (const char* key : {"page", "window"}) {
    std::string text = std::string(key) + (key[0] == 'p' ? "=64k" : "=2");
    expect_refused(text, "option '" + std::string(key) + "' is for mode=pages only");
    expect_refused("mode=access," + text, "option '" + std::string(key) + "' is for mode=pages only");
  }
  for (const char* text : {"classes=Foo", "values=on", "probes=on", "probes=off"}) {
    std::string key(text, strchr(text, '='));
    expect_refused(std::string("mode=pages,") + text, "option '" + key + "' is for mode=access only");
  }
  expect_refused("mode=pages,events=10", "option 'events' is for mode=access and mode=off only");
}

TEST(Options, Calls) {
  Options options =
      parsed("calls=com.acme.Order.total,libz.so.1!inflate,!com.acme.Order.get*,!libjvm.so!JVM_Halt,out=x.db");
  EXPECT_EQ(options.java_calls, (std::vector<std::string>{"com.acme.Order.total", "!com.acme.Order.get*"}));
  EXPECT_EQ(options.native_calls, (std::vector<std::string>{"libz.so.1!inflate", "!libjvm.so!JVM_Halt"}));
  options = parsed("mode=off,calls=\"a.B.*,c.**.<init>\"");
  EXPECT_EQ(options.java_calls, (std::vector<std::string>{"a.B.*", "c.**.<init>"}));
  EXPECT_EQ(Mode::kOff, options.mode);
  EXPECT_FALSE(options.probes);
  expect_refused("calls=total", "option 'calls': 'total' names no calls: it is no CLASS.METHOD");
  expect_refused("calls=com.acme.Order.", "it ends with a dot");
  expect_refused("calls=com.acme.Order.total(int)", "name the method alone");
  expect_refused("calls=int[].clone", "an array has no methods");
  expect_refused("calls=com.acme.Order+.total", "subclasses (+) are not known to calls=");
  expect_refused("calls=libz.so!", "it is no LIBRARY!SYMBOL");
  expect_refused("calls=!a.B.c", "it takes out (!) and names nothing");
  expect_refused("mode=off", "option 'mode': 'off' without calls= would record nothing");
  expect_refused("mode=pages,calls=a.B.c", "option 'calls' is for mode=access and mode=off only");
  for (const char* text : {"classes=Foo", "heap=old", "values=on", "probes=on", "protect=pkey", "twin=on"}) {
    std::string key(text, strchr(text, '='));
    expect_refused(std::string("mode=off,calls=a.B.c,") + text, "option '" + key + "' is for mode=access");
  }
}

TEST(Options, MessagesStayOnOneShortLine) {
  refused("a\nb=c");
  refused(std::string(5000, 'x') + "=1");
  refused("values=" + std::string(5000, 'y'));
  refused("out=\"" + std::string(5000, 'z'));
}

TEST(Options, ReadsOptionFiles) {
  OptionFile file("# comment\n\n  classes=Foo,Bar  \r\nout=\"a,b.db\"\n");
  Options options = parsed(file.at() + ",values=on");
  EXPECT_EQ((Strings{"Foo", "Bar"}), options.classes);
  EXPECT_EQ("a,b.db", options.out);
  EXPECT_TRUE(options.values);
  EXPECT_EQ(file.at() + ",values=on", options.text);
  EXPECT_EQ((Strings{"Foo", "Bar"}), parsed("values=on," + file.at()).classes);
  expect_refused(file.at() + ",out=x", "option 'out' is given twice");
}

TEST(Options, OptionFileErrorsNameFileAndLine) {
  OptionFile unknown("values=on\nfoo=1\n", ".a");
  expect_refused(unknown.at(), " line 2: unknown option 'foo'");
  OptionFile bare("classes=Foo\nBar\n", ".b");
  expect_refused(bare.at(), " line 2: 'Bar' is no option");
  OptionFile nested("@other\n", ".c");
  expect_refused(nested.at(), " line 1: '@other' is no option");
  OptionFile hidden("values=on,@x=y\n", ".d");
  expect_refused(hidden.at(), " line 1: @FILE inside an option file");
  expect_refused("@/nonexistent/file", "cannot read option file '/nonexistent/file': No such file");
  expect_refused("@", "'@' names no option file: write @FILE");
  expect_refused("@/", "cannot read option file '/'");
}

TEST(Options, Help) {
  EXPECT_TRUE(parsed("help").help);
  EXPECT_TRUE(parsed("out=x.db,help").help);
  EXPECT_FALSE(parsed("classes=Foo,help").help) << "a list goes on";
  expect_refused("help,foo=1", "unknown option 'foo'");
  expect_refused("events=-1,help", "option 'events': '-1' is not one of a number, all, off");
  std::string table = options_help();
  for (const char* key : {"classes", "heap", "out", "overwrite", "mode", "calls", "events", "values", "protect", "twin",
                          "probes", "threads", "start", "page", "window", "log"}) {
    EXPECT_NE(std::string::npos, table.find("\n  " + std::string(key) + "=")) << key;
  }
  EXPECT_EQ('\n', table.back());
}

TEST(ExpandPath, ReplacesPidTimeAndPercent) {
  EXPECT_EQ("classaccess-42.db", expand_path("classaccess-%p.db", 42, 7));
  EXPECT_EQ("42-1700000000-%-%p", expand_path("%p-%t-%%-%%p", 42, 1700000000));
  EXPECT_EQ("a%", expand_path("a%", 1, 1));
  EXPECT_EQ("", expand_path("", 1, 1));
}

}  // namespace
}  // namespace classaccess
