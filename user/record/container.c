// SPDX-License-Identifier: GPL-2.0-only
#include "record/container.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <json.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/array.h"
#include "util/clock.h"
#include "util/directory.h"
#include "util/file.h"
#include "util/order.h"

/*
 * The state files are root's, or the user's whose containers they name; they may be of any size.
 * Bound: users: bytes of a state file and entries of a directory; root's; then: containers behind
 * them have no names; again: when there are less; share: none; seen: as containers with their IDs.
 */
#define FILE_MAX    ((off_t)16 << 20)
#define ENTRIES_MAX 65536 /* of a directory */

/*
 * All files of one user, and the entries of a directory. A container takes 1 kB; of a malicious
 * file, 3 bytes of JSON take 160 of memory.
 * Bound: users: bytes of a user's state files, and entries of a directory; then: containers behind
 * them have no names; again: when there are less; share: the user's own; seen: as containers with
 * their IDs.
 */
#define USERS_BYTES_MAX	  ((off_t)512 << 10)
#define USERS_ENTRIES_MAX 256

/*
 * While recording goes on, a user's files may take 1 / this of the time, and this much before that:
 * users who may make control groups can make as many containers.
 * Bound: users: the part of the time in which a user's state files are read, and the time before
 * that; then: the container has its ID; again: as time goes on; share: the user's own; seen: as
 * containers with their IDs.
 */
#define USERS_PART     100
#define USERS_FIRST_NS (100 * NS_PER_MS)

/*
 * When a container without a name is looked for again, at least and at most after the last time.
 * Bound: users: time until a container without a name is looked for again: as long as it has none,
 * within these; then: it has its ID; again: after that time; share: the container's own; seen: as
 * containers with their IDs.
 */
#define UNNAMED_NS_MIN (5 * NS_PER_S)
#define UNNAMED_NS_MAX (300 * NS_PER_S)

#define JSON_DEPTH 64
#define ID_SIZE	   64 /* hexadecimal digits */

struct search {
	const char *pattern;
	struct container_list *found;
	const char *id; /* not NULL: instead of a pattern, the container whose name is wanted */
	char *name;	/* what it is */
	uid_t whose;	/* with id: of whom; 0: the system's */
	uid_t owner;	/* whose state files are read */
	off_t left;	/* of an owner but root: so much may still be read */
	int err;
};

static bool is_id(const char *text)
{
	size_t size = 0;

	while (isxdigit((unsigned char)text[size]))
		size++;
	return size == ID_SIZE && !text[size];
}

/* A container and its name, or a part of it. */
static void offer(struct search *s, const char *id, const char *name)
{
	struct container_list *found = s->found;
	char *text;
	int size;

	if (s->id) {
		if (*name && s->owner == s->whose && strcmp(id, s->id) == 0) {
			free(s->name);
			s->name = strdup(name);
		}
		return;
	}
	if (s->err || !is_id(id) || !*name || fnmatch(s->pattern, name, 0) != 0)
		return;
	/* As in record/cgroup_name.h: users name their own containers alone. */
	size = s->owner ? asprintf(&text, "user-%u.slice/%s", (unsigned int)s->owner, id)
			: asprintf(&text, "%s", id);
	if (size < 0) {
		s->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < found->count; i++)
		if (strcmp(found->texts[i], text) == 0) {
			free(text);
			return;
		}
	s->err = array_add(found->texts, found->count, found->room, text);
	if (s->err)
		free(text);
}

static void offer_of_pod(struct search *s, const char *id, const char *namespace, const char *pod,
			 const char *container)
{
	char name[1024];

	snprintf(name, sizeof(name), "%s/%s/%s", namespace, pod, container);
	offer(s, id, name);
	if (s->id)
		return;
	offer(s, id, name + strlen(namespace) + 1);
	offer(s, id, pod);
	offer(s, id, container);
}

/* Calls visit for each entry of a directory, which it closes. */
static void each_entry(struct search *s, int fd,
		       void (*visit)(struct search *s, int directory, const char *name))
{
	DIR *directory = file_directory_stream(fd);
	size_t most = s->owner ? USERS_ENTRIES_MAX : ENTRIES_MAX;
	const struct dirent *entry;

	for (size_t i = 0; directory && i < most && !s->err && (entry = readdir(directory)); i++)
		if (entry->d_name[0] != '.')
			visit(s, fd, entry->d_name);
	if (directory)
		closedir(directory);
}

/* The same for a directory that is named by its path. */
static void each_entry_of(struct search *s, const char *path,
			  void (*visit)(struct search *s, int directory, const char *name))
{
	int fd = directory_open(path);

	if (s->found && (fd == -EACCES || fd == -EPERM) && s->owner == 0)
		snprintf(s->found->unreadable, sizeof(s->found->unreadable), "%s", path);
	each_entry(s, fd, visit);
}

/* Reads a file of JSON; NULL: it cannot be read, or is too large, or invalid. */
static struct json_object *read_json(struct search *s, int directory, const char *name)
{
	off_t most = s->owner ? s->left : FILE_MAX;
	int fd = directory_open_file(directory, name);
	struct json_object *json = NULL;
	struct json_tokener *tokener = NULL;
	char *text = NULL;
	struct stat status;
	ssize_t n = 1;
	off_t size = 0;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) == 0 && status.st_size <= most)
		text = malloc(status.st_size + 1);
	while (text && n > 0 && size < status.st_size) {
		n = read(fd, text + size, status.st_size - size);
		size += MAX(n, 0);
	}
	close(fd);
	s->left -= s->owner ? size : 0;
	tokener = text ? json_tokener_new_ex(JSON_DEPTH) : NULL;
	if (tokener)
		json = json_tokener_parse_ex(tokener, text, size);
	if (tokener)
		json_tokener_free(tokener);
	free(text);
	return json;
}

/* The text at the end of a path of members; "": there is none. */
static const char *text_at(struct json_object *json, const char *const *path)
{
	for (; *path; path++)
		if (!json_object_is_type(json, json_type_object) ||
		    !json_object_object_get_ex(json, *path, &json))
			return "";
	return json_object_is_type(json, json_type_string) ? json_object_get_string(json) : "";
}

#define TEXT_AT(json, ...) text_at(json, (const char *const[]){ __VA_ARGS__, NULL })

/* The file of a container in its directory; NULL: of another than the one that is wanted. */
static struct json_object *read_config(struct search *s, int directory, const char *id,
				       const char *file)
{
	bool is_other = s->id && strcmp(id, s->id) != 0;
	int fd = is_other ? -1 : directory_open_in(directory, id, false);
	struct json_object *json = fd < 0 ? NULL : read_json(s, fd, file);

	file_close(fd);
	return json;
}

/* docker: ID/config.v2.json */
static void visit_docker(struct search *s, int directory, const char *id)
{
	struct json_object *json = read_config(s, directory, id, "config.v2.json");
	const char *name = TEXT_AT(json, "Name");
	const char *container = TEXT_AT(json, "Config", "Labels", "io.kubernetes.container.name");

	offer(s, id, name + (*name == '/'));
	if (*container)
		offer_of_pod(
			s, id, TEXT_AT(json, "Config", "Labels", "io.kubernetes.pod.namespace"),
			TEXT_AT(json, "Config", "Labels", "io.kubernetes.pod.name"), container);
	json_object_put(json);
}

/* podman and CRI-O: DRIVER-containers/containers.json, a list of containers with their names */
static void visit_storage(struct search *s, int directory, const char *name)
{
	static const char *const files[] = { "containers.json", "volatile-containers.json" };
	static const char ending[] = "-containers";
	size_t size = strlen(name);
	int fd;

	if (size < sizeof(ending) || strcmp(name + size - (sizeof(ending) - 1), ending) != 0)
		return;
	fd = directory_open_in(directory, name, false);
	for (size_t i = 0; i < 2 && fd >= 0; i++) {
		struct json_object *json = read_json(s, fd, files[i]), *names, *text;
		bool is_list = json_object_is_type(json, json_type_array);

		for (size_t j = 0; is_list && j < json_object_array_length(json); j++) {
			struct json_object *container = json_object_array_get_idx(json, j);

			if (!json_object_is_type(container, json_type_object) ||
			    !json_object_object_get_ex(container, "names", &names) ||
			    !json_object_is_type(names, json_type_array))
				continue;
			for (size_t k = 0; k < json_object_array_length(names); k++) {
				text = json_object_array_get_idx(names, k);
				if (json_object_is_type(text, json_type_string))
					offer(s, TEXT_AT(container, "id"),
					      json_object_get_string(text));
			}
		}
		json_object_put(json);
	}
	file_close(fd);
}

/* containerd: NAMESPACE/ID/config.json, the specification by which it was started */
static void visit_task(struct search *s, int directory, const char *id)
{
	struct json_object *json = read_config(s, directory, id, "config.json");
	const char *container = TEXT_AT(json, "annotations", "io.kubernetes.cri.container-name");

	offer(s, id, TEXT_AT(json, "annotations", "nerdctl/name"));
	if (*container)
		offer_of_pod(
			s, id, TEXT_AT(json, "annotations", "io.kubernetes.cri.sandbox-namespace"),
			TEXT_AT(json, "annotations", "io.kubernetes.cri.sandbox-name"), container);
	json_object_put(json);
}

static void visit_namespace(struct search *s, int directory, const char *name)
{
	each_entry(s, directory_open_in(directory, name, false), visit_task);
}

/* kubernetes, with any engine: links to logs, POD_NAMESPACE_CONTAINER-ID.log */
static void visit_log(struct search *s, int directory, const char *name)
{
	char copy[NAME_MAX + 1], *namespace, *container, *id, *end;

	(void)directory;
	snprintf(copy, sizeof(copy), "%s", name);
	namespace = strchr(copy, '_');
	container = namespace ? strchr(namespace + 1, '_') : NULL;
	id = container ? strrchr(container, '-') : NULL;
	end = id ? strchr(id, '.') : NULL;
	if (!end || strcmp(end, ".log") != 0)
		return;
	*namespace ++ = *container++ = *id++ = *end = '\0';
	offer_of_pod(s, id, namespace, copy, container);
}

/* Podman's without root: each user's are named in the home directory. */
static void search_homes(struct search *s)
{
	FILE *passwd = fopen("/etc/passwd", "re");
	struct passwd entry, *user;
	char buffer[4096], path[PATH_MAX];

	while (passwd && !s->err) {
		int code = fgetpwent_r(passwd, &entry, buffer, sizeof(buffer), &user);

		if (code == ERANGE) /* a line that is too long is skipped */
			continue;
		if (code)
			break;
		if (!user->pw_uid || (geteuid() && geteuid() != user->pw_uid) ||
		    (s->id && user->pw_uid != s->whose))
			continue;
		s->owner = user->pw_uid;
		s->left = USERS_BYTES_MAX;
		snprintf(path, sizeof(path), "%s/.local/share/containers/storage", user->pw_dir);
		each_entry_of(s, path, visit_storage);
	}
	s->owner = 0;
	file_close_stream(passwd);
}

static void search_system(struct search *s)
{
	int etc = directory_open("/etc/docker");
	struct json_object *json = etc < 0 ? NULL : read_json(s, etc, "daemon.json");
	const char *root = TEXT_AT(json, "data-root");
	char path[PATH_MAX];

	file_close(etc);
	snprintf(path, sizeof(path), "%s/containers", *root ? root : "/var/lib/docker");
	json_object_put(json);
	each_entry_of(s, path, visit_docker);
	each_entry_of(s, "/var/lib/containers/storage", visit_storage);
	each_entry_of(s, "/run/containers/storage", visit_storage); /* of podman run --rm */
	each_entry_of(s, "/run/containerd/io.containerd.runtime.v2.task", visit_namespace);
	each_entry_of(s, "/var/log/containers", visit_log);
}

int containers_find(const char *pattern, struct container_list *found, struct error *e)
{
	struct search s = { .pattern = pattern, .found = found };

	search_system(&s);
	search_homes(&s);
	return s.err ? error_no_memory(e) : 0;
}

/*
 * More than run on a machine at once.
 * Bound: users: names of containers that are remembered; then: all are forgotten; again: at once:
 * they are looked for again; share: none; seen: not seen, but as CPU time.
 */
#define NAMES_MAX 4096

ORDER_OF_KEY(compare_id, char, struct container_entry, strcmp(a, b->id))

static void forget_names(struct container_names *names)
{
	for (; names->count; names->count--) {
		free(names->entries[names->count - 1].id);
		free(names->entries[names->count - 1].name);
	}
}

/* Adds the user if need be. Returns NULL if memory runs out. */
static struct container_user *find_user(struct container_names *names, uid_t uid)
{
	for (size_t i = 0; i < names->user_count; i++)
		if (names->users[i].uid == uid)
			return &names->users[i];
	return array_add(names->users, names->user_count, names->user_room,
			 (struct container_user){ .uid = uid })
		       ? NULL
		       : &names->users[names->user_count - 1];
}

const char *container_name(struct container_names *names, const char *id)
{
	const char *slash = strrchr(id, '/');
	struct search s = { .id = slash ? slash + 1 : id };
	struct container_entry *found = NULL;
	struct container_user *user = NULL;
	uint64_t begin_ns = now_ns(), wait_ns;
	unsigned int uid = 0;
	size_t place = 0;
	int end = 0;
	char *copy;

	if (names->count)
		found = bsearch(id, names->entries, names->count, sizeof(*found), compare_id);
	if (found && (found->name || begin_ns < found->next_ns))
		return found->name;
	if (!is_id(s.id)) /* it is a name, or in another container, whose files are elsewhere */
		return NULL;
	if (slash && (sscanf(id, "user-%u.slice%n", &uid, &end) != 1 || id + end != slash || !uid))
		return NULL;
	user = uid ? find_user(names, uid) : NULL;
	/* A later sample, or window, may have the name. */
	if (uid && (!user || user->paid_ns > begin_ns + USERS_PART * USERS_FIRST_NS))
		return NULL;
	if (!found && names->count == NAMES_MAX)
		forget_names(names);
	if (!found) {
		copy = strdup(id);
		if (!copy || array_reserve(&names->entries, &names->room, names->count + 1,
					   sizeof(*names->entries))) {
			free(copy);
			return NULL;
		}
		while (place < names->count && strcmp(names->entries[place].id, id) < 0)
			place++;
		found = &names->entries[place];
		memmove(found + 1, found, (names->count++ - place) * sizeof(*found));
		*found = (struct container_entry){ .id = copy, .first_ns = begin_ns };
	}
	if (user) {
		s.whose = uid;
		search_homes(&s);
		user->paid_ns = MAX(user->paid_ns, begin_ns);
		user->paid_ns += USERS_PART * (now_ns() - begin_ns);
	} else {
		search_system(&s);
	}
	found->name = s.name;
	/* It may be named later. The longer it has none, the less often it is looked for. */
	wait_ns = begin_ns - found->first_ns;
	wait_ns = MAX(wait_ns, UNNAMED_NS_MIN);
	found->next_ns = begin_ns + MIN(wait_ns, UNNAMED_NS_MAX);
	return s.name;
}

void container_names_free(struct container_names *names)
{
	forget_names(names);
	free(names->entries);
	free(names->users);
	*names = (struct container_names){ 0 };
}

void container_list_free(struct container_list *list)
{
	array_free_texts(list->texts, list->count);
	*list = (struct container_list){ 0 };
}
