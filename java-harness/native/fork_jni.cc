// The native half of Children: forks, and the child lives on for a while before it ends. Returns what waitpid said.
#include <jni.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// What a child may do: memory of its own, system calls, another child.
void live() {
  char* block = static_cast<char*>(std::malloc(1 << 20));
  if (block == nullptr) _exit(99);
  std::memset(block, 3, 1 << 20);
  long sum = 0;
  for (int i = 0; i < 1 << 20; i++) sum += block[i];
  std::free(block);
  usleep(200000);
  char text[64];
  int length = std::snprintf(text, sizeof text, "child computed %ld\n", sum);
  if (write(STDOUT_FILENO, text, static_cast<size_t>(length)) != length) _exit(98);
}

}  // namespace

extern "C" {

// how: 0 the child ends with status 7, 1 it becomes /bin/echo, 2 it has a child itself and ends with that one's status.
JNIEXPORT jint JNICALL Java_Children_fork(JNIEnv*, jclass, jint how) {
  pid_t child = fork();
  if (child == -1) return -1;
  if (child == 0) {
    live();
    if (how == 1) {
      execl("/bin/echo", "echo", "the child is another program", static_cast<char*>(nullptr));
      _exit(97);
    }
    if (how == 2) {
      pid_t grandchild = fork();
      if (grandchild == 0) {
        live();
        _exit(8);
      }
      int status = 0;
      waitpid(grandchild, &status, 0);
      _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 96);
    }
    _exit(7);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -2;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1000 - WTERMSIG(status);
}

}  // extern "C"
