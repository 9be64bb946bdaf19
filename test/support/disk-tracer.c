/*
 * Runs a program and counts the system calls of it that change files below a folder. The chosen one fails, or the whole
 * program ends before it. Compiled in memory by Bun (TinyCC), so it declares what it needs of Linux on x86-64 itself.
 */
typedef unsigned long word;

int fork(void);
int execvp(const char *program, char *const argv[]);
int waitpid(int pid, int *status, int options);
long ptrace(int request, int pid, void *address, void *data);
int kill(int pid, int signal);
int raise(int signal);
int setpgid(int pid, int group);
long readlink(const char *path, char *into, word size);
int open(const char *path, int flags, ...);
long pread(int file, void *into, word size, long offset);
int close(int file);
int dprintf(int file, const char *format, ...);
int snprintf(char *into, word size, const char *format, ...);
int strncmp(const char *one, const char *other, word size);
word strlen(const char *text);
int *__errno_location(void);
void _exit(int code);

enum { traceMe = 0, getRegisters = 12, setRegisters = 13, untilCall = 24, setOptions = 0x4200 };
enum { stop = 19, trap = 5, end = 9 };
/* Stops at calls are marked, new threads and processes are traced too, and all end with the tracer. */
enum { options = 1 | 2 | 4 | 8 | 0x100000 };
enum { ofDescriptor, ofPath, ofPathAt, ofTwoPaths, ofTwoPathsAt, ofOpen, ofOpenAt };

struct registers {
  word r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, number, rip, cs, flags, rsp, ss, fs_base,
      gs_base, ds, es, fs, gs;
};

static const struct { int number; const char *name; int kind; } calls[] = {
    {1, "write", ofDescriptor}, {18, "pwrite", ofDescriptor}, {20, "writev", ofDescriptor}, {296, "pwritev", ofDescriptor},
    {328, "pwritev2", ofDescriptor}, {74, "fsync", ofDescriptor}, {75, "fdatasync", ofDescriptor},
    {77, "ftruncate", ofDescriptor}, {91, "fchmod", ofDescriptor}, {285, "fallocate", ofDescriptor},
    {82, "rename", ofTwoPaths}, {264, "rename", ofTwoPathsAt}, {316, "rename", ofTwoPathsAt}, {86, "link", ofTwoPaths},
    {265, "link", ofTwoPathsAt}, {87, "unlink", ofPath}, {263, "unlink", ofPathAt}, {84, "rmdir", ofPath},
    {83, "mkdir", ofPath}, {258, "mkdir", ofPathAt}, {90, "chmod", ofPath}, {268, "chmod", ofPathAt}, {2, "create", ofOpen},
    {257, "create", ofOpenAt},
};

static void textAt(int pid, word address, char *into, word size) {
  char memory[64];
  snprintf(memory, sizeof memory, "/proc/%d/mem", pid);
  int file = open(memory, 0);
  long length = file < 0 ? -1 : pread(file, into, size - 1, (long)address);
  if (file >= 0) close(file);
  into[length < 0 ? 0 : length] = 0;
}

static void pathOf(int pid, word descriptor, char *into, word size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, (int)descriptor);
  long length = readlink(link, into, size - 1);
  into[length < 0 ? 0 : length] = 0;
}

/* The name of the call if it changes a file below the folder, and the path of that file: of two, the second. */
static const char *changeBy(int pid, struct registers *at, const char *folder, char *path, word size) {
  for (int i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    if (calls[i].number != (int)at->number) continue;
    int kind = calls[i].kind;
    word flags = kind == ofOpen ? at->rsi : at->rdx;
    /* O_CREAT or O_TRUNC */
    if ((kind == ofOpen || kind == ofOpenAt) && (flags & 01100) == 0) return 0;
    if (kind == ofDescriptor) pathOf(pid, at->rdi, path, size);
    else if (kind == ofPath || kind == ofOpen) textAt(pid, at->rdi, path, size);
    else if (kind == ofTwoPaths || kind == ofPathAt || kind == ofOpenAt) textAt(pid, at->rsi, path, size);
    else textAt(pid, at->r10, path, size);
    return strncmp(path, folder, strlen(folder)) == 0 ? calls[i].name : 0;
  }
  return 0;
}

/*
 * chosen: the number of the call from 1, or 0 for none. error: what it fails with, or 0: then the program ends before it.
 * log: a descriptor for one line a call. Returns the exit code of the program, 128 + its signal, or -1 without permission.
 */
int traced(char *const argv[], const char *folder, int chosen, int error, int log) {
  int first = fork();
  if (first == 0) {
    setpgid(0, 0);
    if (ptrace(traceMe, 0, 0, 0) != 0) _exit(126);
    raise(stop);
    execvp(argv[0], argv);
    _exit(127);
  }
  int status = 0, count = 0, failing = 0;
  if (first < 0 || waitpid(first, &status, 0) != first || (status & 0x7f) == 0) return -1;
  if (ptrace(setOptions, first, 0, (void *)options) != 0) return -1;
  ptrace(untilCall, first, 0, 0);
  for (;;) {
    int pid = waitpid(-1, &status, 0x40000000);
    if (pid < 0) return -1;
    if ((status & 0x7f) == 0 || (status & 0xff) != 0x7f) {
      if (pid == first) return (status & 0x7f) == 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f);
      continue;
    }
    int signal = (status >> 8) & 0xff;
    int passed = signal;
    if (signal == (trap | 0x80)) {
      struct registers at;
      char path[4096];
      passed = 0;
      ptrace(getRegisters, pid, 0, &at);
      /* At the entry to a call Linux has set the result to "no such call". */
      int enters = (long)at.rax == -38;
      if (failing == pid) {
        at.rax = -error;
        ptrace(setRegisters, pid, 0, &at);
        failing = 0;
      } else if (enters) {
        const char *name = changeBy(pid, &at, folder, path, sizeof path);
        if (name) {
          count++;
          dprintf(log, "%s %s\n", name, path);
          if (count == chosen && error == 0) kill(-first, end);
          if (count == chosen && error != 0) {
            at.number = -1;
            ptrace(setRegisters, pid, 0, &at);
            failing = pid;
          }
        }
      }
    } else if (signal == trap || signal == stop)
      passed = 0;
    ptrace(untilCall, pid, 0, (void *)(word)passed);
  }
}
