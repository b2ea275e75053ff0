/* The profile file: the sample application's format with every setting written out, so that nothing has a default here. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cfgfile.h>

#include "qos_sched.h"

#define CLASSES RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE

static bool read_number(const char *text, uint64_t *number)
{
	char *end;

	if (text == NULL)
		return false;
	errno = 0;
	*number = strtoull(text, &end, 0);
	return errno == 0 && end != text && *end == '\0';
}

static bool required(struct rte_cfgfile *file, const char *section, const char *key, uint64_t *number)
{
	if (read_number(rte_cfgfile_get_entry(file, section, key), number))
		return true;
	complain("the profile has no number for `%s` in [%s]", key, section);
	return false;
}

static bool required_small(struct rte_cfgfile *file, const char *section, const char *key, uint32_t *number)
{
	uint64_t wide;

	if (!required(file, section, key, &wide))
		return false;
	if (wide > UINT32_MAX) {
		complain("`%s` in [%s] of the profile is too large: %" PRIu64, key, section, wide);
		return false;
	}
	*number = (uint32_t)wide;
	return true;
}

/* Numbers separated by blanks, at most `most` of them; how many there are, or -1. */
static int read_list(const char *text, uint64_t *numbers, int most)
{
	int n = 0;

	while (*text != '\0') {
		char *end;
		uint64_t number = strtoull(text, &end, 10);

		if (end == text || n == most)
			return -1;
		numbers[n++] = number;
		for (text = end; *text == ' ' || *text == '\t'; text++)
			;
	}
	return n;
}

/* As many numbers as `numbers` has room for. */
static bool required_list(struct rte_cfgfile *file, const char *section, const char *key, uint64_t *numbers, int n)
{
	const char *text = rte_cfgfile_get_entry(file, section, key);

	if (text != NULL && read_list(text, numbers, n) == n)
		return true;
	complain("the profile has no %d numbers for `%s` in [%s]", n, key, section);
	return false;
}

struct limits {
	uint64_t *tb_rate;
	uint64_t *tb_size;
	uint64_t *tc_rate;
	uint64_t *tc_period;
};

static bool read_limits(struct rte_cfgfile *file, const char *section, struct limits to)
{
	char key[CFG_NAME_LEN];

	if (!required(file, section, "tb rate", to.tb_rate) || !required(file, section, "tb size", to.tb_size) ||
	    !required(file, section, "tc period", to.tc_period))
		return false;
	for (int class = 0; class < CLASSES; class++) {
		snprintf(key, sizeof(key), "tc %d rate", class);
		if (!required(file, section, key, &to.tc_rate[class]))
			return false;
	}
	return true;
}

static bool read_subport_profiles(struct rte_cfgfile *file, struct profile *profile)
{
	int n = rte_cfgfile_num_sections(file, "subport profile", strlen("subport profile"));

	if (n < 1 || n > MAX_SUBPORT_PROFILES) {
		complain("the profile has %d sections [subport profile N]: 1 to %d are possible", n, MAX_SUBPORT_PROFILES);
		return false;
	}
	for (int i = 0; i < n; i++) {
		struct rte_sched_subport_profile_params *to = &profile->subport_profiles[i];
		char section[CFG_NAME_LEN];

		snprintf(section, sizeof(section), "subport profile %d", i);
		if (!read_limits(file, section, (struct limits){&to->tb_rate, &to->tb_size, to->tc_rate, &to->tc_period}))
			return false;
	}
	profile->port.subport_profiles = profile->subport_profiles;
	profile->port.n_subport_profiles = (uint32_t)n;
	profile->port.n_max_subport_profiles = MAX_SUBPORT_PROFILES;
	return true;
}

static bool read_weights(struct rte_cfgfile *file, const char *section, struct rte_sched_pipe_params *to)
{
	uint64_t weights[RTE_SCHED_BE_QUEUES_PER_PIPE];
	uint32_t oversubscription;

	if (!required_small(file, section, "tc 12 oversubscription weight", &oversubscription) ||
	    !required_list(file, section, "tc 12 wrr weights", weights, RTE_SCHED_BE_QUEUES_PER_PIPE))
		return false;
	to->tc_ov_weight = (uint8_t)oversubscription;
	for (int queue = 0; queue < RTE_SCHED_BE_QUEUES_PER_PIPE; queue++)
		to->wrr_weights[queue] = (uint8_t)weights[queue];
	return true;
}

/* The number of pipe profiles; 0 where they cannot be used. */
static uint32_t read_pipe_profiles(struct rte_cfgfile *file, struct profile *profile)
{
	int n = rte_cfgfile_num_sections(file, "pipe profile", strlen("pipe profile"));

	if (n < 1 || n > MAX_PIPE_PROFILES) {
		complain("the profile has %d sections [pipe profile N]: 1 to %d are possible", n, MAX_PIPE_PROFILES);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		struct rte_sched_pipe_params *to = &profile->pipe_profiles[i];
		char section[CFG_NAME_LEN];

		snprintf(section, sizeof(section), "pipe profile %d", i);
		if (!read_limits(file, section,
				 (struct limits){&to->tb_rate, &to->tb_size, to->tc_rate, &to->tc_period}) ||
		    !read_weights(file, section, to))
			return 0;
	}
	return (uint32_t)n;
}

/* What the numbers in a key have: `pipe 7 = 0`, `pipe 0-4095 = 0`, `subport 1 = 2`. */
struct assignment {
	const char *what;
	int16_t *profile_of;
	/* How many there are, and how many profiles. */
	uint32_t n, n_profiles;
};

static bool read_range(const struct rte_cfgfile_entry *entry, const struct assignment *to)
{
	unsigned long first, last;
	uint64_t number;
	char *end;

	first = last = strtoul(entry->name + strlen(to->what), &end, 10);
	if (*end == '-')
		last = strtoul(end + 1, &end, 10);
	if (*end != '\0' || first > last || last >= to->n) {
		complain("`%s` of the profile is no range from 0 to %u", entry->name, to->n - 1);
		return false;
	}
	if (!read_number(entry->value, &number) || number >= to->n_profiles) {
		complain("`%s = %s` of the profile: there is no such profile", entry->name, entry->value);
		return false;
	}
	for (unsigned long i = first; i <= last; i++)
		to->profile_of[i] = (int16_t)number;
	return true;
}

static bool read_ranges(struct rte_cfgfile *file, const char *section, const struct assignment *to)
{
	int n = rte_cfgfile_section_num_entries(file, section);
	struct rte_cfgfile_entry *entries = calloc(n > 0 ? (size_t)n : 1, sizeof(*entries));
	bool is_good = entries != NULL;

	if (is_good && n > 0)
		rte_cfgfile_section_entries(file, section, entries, n);
	for (int i = 0; is_good && i < n; i++)
		if (strncmp(entries[i].name, to->what, strlen(to->what)) == 0)
			is_good = read_range(&entries[i], to);
	free(entries);
	return is_good;
}

static bool read_queue_sizes(struct rte_cfgfile *file, const char *section, struct profile *profile, uint32_t subport)
{
	struct rte_sched_subport_params *to = &profile->subports[subport];
	uint64_t sizes[CLASSES];

	if (!required_list(file, section, "queue sizes", sizes, CLASSES))
		return false;
	for (int queue = 0; queue < RTE_SCHED_QUEUES_PER_PIPE; queue++) {
		int class = RTE_MIN(queue, RTE_SCHED_TRAFFIC_CLASS_BE);

		to->qsize[class] = (uint16_t)sizes[class];
		if (to->qsize[class] != 0)
			profile->active[subport][profile->n_active[subport]++] = (uint8_t)queue;
	}
	return true;
}

static bool read_subport(struct rte_cfgfile *file, struct profile *profile, uint32_t subport, uint32_t n_profiles)
{
	struct rte_sched_subport_params *to = &profile->subports[subport];
	char section[CFG_NAME_LEN];

	snprintf(section, sizeof(section), "subport %u", subport);
	to->pipe_profiles = profile->pipe_profiles;
	to->n_pipe_profiles = n_profiles;
	to->n_max_pipe_profiles = MAX_PIPE_PROFILES;
	to->cman_params = profile->has_red ? &profile->red : NULL;
	memset(profile->pipe_profile[subport], -1, sizeof(profile->pipe_profile[subport]));
	if (!required_small(file, section, "number of pipes per subport", &to->n_pipes_per_subport_enabled))
		return false;
	if (to->n_pipes_per_subport_enabled < 1 || to->n_pipes_per_subport_enabled > MAX_PIPES) {
		complain("[%s] of the profile has %u pipes: 1 to %d are possible", section, to->n_pipes_per_subport_enabled,
			 MAX_PIPES);
		return false;
	}
	const struct assignment pipes = {"pipe ", profile->pipe_profile[subport], to->n_pipes_per_subport_enabled,
					 n_profiles};
	return read_queue_sizes(file, section, profile, subport) && read_ranges(file, section, &pipes);
}

/* Curves of one class, by colour. A class that is not there is not dropped early: its thresholds are zero. */
static bool read_curves(struct rte_cfgfile *file, int class, struct rte_red_params *curves)
{
	static const char *const keys[] = {"min", "max", "inv prob", "weight"};
	uint64_t values[RTE_DIM(keys)][RTE_COLORS];
	char key[CFG_NAME_LEN];

	snprintf(key, sizeof(key), "tc %d red min", class);
	if (!rte_cfgfile_has_entry(file, "red", key))
		return true;
	for (unsigned i = 0; i < RTE_DIM(keys); i++) {
		snprintf(key, sizeof(key), "tc %d red %s", class, keys[i]);
		if (!required_list(file, "red", key, values[i], RTE_COLORS))
			return false;
	}
	for (int colour = 0; colour < RTE_COLORS; colour++)
		curves[colour] = (struct rte_red_params){
			.min_th = (uint16_t)values[0][colour],
			.max_th = (uint16_t)values[1][colour],
			.maxp_inv = (uint16_t)values[2][colour],
			.wq_log2 = (uint16_t)values[3][colour],
		};
	return true;
}

static bool read_red(struct rte_cfgfile *file, struct profile *profile)
{
	if (rte_cfgfile_has_section(file, "pie")) {
		complain("the profile has a section [pie], which is not modelled: remove it");
		return false;
	}
	profile->has_red = rte_cfgfile_has_section(file, "red") != 0;
	profile->red.cman_mode = RTE_SCHED_CMAN_RED;
	for (int class = 0; profile->has_red && class < CLASSES; class++)
		if (!read_curves(file, class, profile->red.red_params[class]))
			return false;
	return true;
}

static bool read_sections(struct rte_cfgfile *file, struct profile *profile)
{
	struct rte_sched_port_params *port = &profile->port;
	uint32_t n_profiles;

	if (!required_small(file, "port", "frame overhead", &port->frame_overhead) ||
	    !required_small(file, "port", "number of subports per port", &port->n_subports_per_port))
		return false;
	if (port->n_subports_per_port < 1 || port->n_subports_per_port > MAX_SUBPORTS) {
		complain("the profile has %u subports: 1 to %d are possible", port->n_subports_per_port, MAX_SUBPORTS);
		return false;
	}
	n_profiles = read_pipe_profiles(file, profile);
	if (n_profiles == 0 || !read_subport_profiles(file, profile) || !read_red(file, profile))
		return false;
	/* A subport that is in no range has profile 0, as in the format. */
	const struct assignment subports = {"subport ", profile->subport_profile, port->n_subports_per_port,
					    port->n_subport_profiles};
	if (!read_ranges(file, "port", &subports))
		return false;
	for (uint32_t subport = 0; subport < port->n_subports_per_port; subport++) {
		uint32_t pipes;

		if (!read_subport(file, profile, subport, n_profiles))
			return false;
		/* No more than are used: the library numbers queues by this, and reads counters up to the sum of those used. */
		pipes = profile->subports[subport].n_pipes_per_subport_enabled;
		if (port->n_pipes_per_subport < pipes)
			port->n_pipes_per_subport = pipes;
	}
	return true;
}

bool profile_read(const char *path, struct profile *profile)
{
	struct rte_cfgfile *file = rte_cfgfile_load(path, 0);
	bool is_good;

	if (file == NULL) {
		complain("%s cannot be read as a profile", path);
		return false;
	}
	is_good = read_sections(file, profile);
	rte_cfgfile_close(file);
	return is_good;
}
