/* Preload library that writes every datagram a program sends or receives through libibumad to the file MADLOG, one line
 * each: "send" or "recv" and 256 bytes in hexadecimal. Used by capture.sh. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/umad.h>

static void note(const char *what, void *umad)
{
	const char *path = getenv("MADLOG");
	const unsigned char *mad = umad_get_mad(umad);
	char line[256 * 2 + 16];
	int n = sprintf(line, "%s ", what);
	FILE *f;

	for (int i = 0; i < 256; i++)
		n += sprintf(line + n, "%02x", mad[i]);
	if (path && (f = fopen(path, "a"))) {
		fprintf(f, "%s\n", line);
		fclose(f);
	}
}

int umad_send(int port, int agent, void *umad, int length, int timeout, int retries)
{
	static int (*next)(int, int, void *, int, int, int);

	if (!next)
		next = dlsym(RTLD_NEXT, "umad_send");
	note("send", umad);
	return next(port, agent, umad, length, timeout, retries);
}

int umad_recv(int port, void *umad, int *length, int timeout)
{
	static int (*next)(int, void *, int *, int);
	int agent;

	if (!next)
		next = dlsym(RTLD_NEXT, "umad_recv");
	agent = next(port, umad, length, timeout);
	if (agent >= 0)
		note("recv", umad);
	return agent;
}
