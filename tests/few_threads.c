/* A library to be preloaded: a process gets THREADS_MOST threads, each further one is refused as if it were
 * one too many for `ulimit -u`.
 *
 * Built with: cc -shared -fPIC -o few_threads.so few_threads.c
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*work)(void *), void *with)
{
	static atomic_int begun;
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
	const char *most = getenv("THREADS_MOST");

	if (most && atomic_fetch_add(&begun, 1) >= atoi(most))
		return EAGAIN;
	return real(thread, attr, work, with);
}
