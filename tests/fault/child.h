// A test body in a forked child: for what can be done only once in a process, or kills it.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace classaccess::test {

struct ChildEnd {
  bool exited = false;
  int code = 0;  // exit status, or the signal
};

// The child's failed expectations are printed by it and make its exit status 1.
template <typename Body>
ChildEnd run_in_child(Body&& body) {
  fflush(stdout);
  fflush(stderr);
  pid_t pid = fork();
  if (pid == 0) {
    rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    alarm(30);
    body();
    fflush(stdout);
    fflush(stderr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status)) return {true, WEXITSTATUS(status)};
  return {false, WTERMSIG(status)};
}

template <typename Body>
void expect_fine_in_child(Body&& body) {
  ChildEnd end = run_in_child(body);
  EXPECT_TRUE(end.exited) << "killed by signal " << end.code;
  EXPECT_EQ(0, end.code) << "see above what failed in the child";
}

}  // namespace classaccess::test
