/* The limit of dispatch on two cores: two threads that do nothing but start
 * a program with posix_spawn and wait for it, with a number as its argument:
 * `true` takes half as long again with an argument as without, since it then
 * reads the locale. Usage: limit COUNT PROGRAM */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { THREADS = 2 };

extern char **environ;
static char *program;
static int each;

static void *loop(void *unused) {
    (void)unused;
    char number[16];
    char *words[] = {program, number, NULL};
    for (int i = 0; i < each; i++) {
        snprintf(number, sizeof number, "%d", i);
        pid_t pid;
        int status;
        if (posix_spawn(&pid, program, NULL, NULL, words, environ) != 0) {
            perror(program);
            exit(1);
        }
        waitpid(pid, &status, 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: limit COUNT PROGRAM\n");
        return 2;
    }
    each = atoi(argv[1]) / THREADS;
    program = argv[2];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, loop, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
