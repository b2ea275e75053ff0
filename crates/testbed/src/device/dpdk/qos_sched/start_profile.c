/* A test: whether the library takes the profiles that are named, each as its device would start it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include "qos_sched.h"

static struct profile profile;

void complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

int main(int argc, char **argv)
{
	char *arguments[] = {argv[0], "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "--log-level=error",
			     "-m512", "--lcores=0@0", NULL};

	if (rte_eal_init(RTE_DIM(arguments) - 1, arguments) < 0)
		return EXIT_FAILURE;
	for (int i = 1; i < argc; i++) {
		struct rte_sched_port *sched = NULL;

		memset(&profile, 0, sizeof(profile));
		if (profile_read(argv[i], &profile)) {
			profile.port.name = "port";
			profile.port.rate = 1250000000;
			profile.port.mtu = 1522;
			sched = scheduler_start(&profile);
		}
		if (sched != NULL) {
			puts("starts");
			rte_sched_port_free(sched);
		}
	}
	return EXIT_SUCCESS;
}
