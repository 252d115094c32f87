// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "kmod/settings.h"
#include "kmod/users.h"

struct user_count {
	struct hlist_node node;
	kuid_t uid;
	unsigned int processes; /* at least 1 */
};

static DEFINE_HASHTABLE(users, 6);
static DEFINE_SPINLOCK(lock);

static struct user_count *find_count(kuid_t uid)
{
	struct user_count *user;

	hash_for_each_possible(users, user, node, __kuid_val(uid))
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

struct user_count *user_add_process(bool replaces)
{
	struct user_count *added = kzalloc(sizeof(*added), GFP_KERNEL_ACCOUNT), *user;
	u32 most = settings_max_processes();

	if (!added)
		return ERR_PTR(-ENOMEM);
	added->uid = current_uid();
	spin_lock(&lock);
	user = find_count(added->uid);
	if (!replaces && (user ? user->processes : 0) >= most) {
		user = ERR_PTR(-EDQUOT);
	} else {
		if (!user) {
			user = added;
			added = NULL;
			hash_add(users, &user->node, __kuid_val(user->uid));
		}
		user->processes++;
	}
	spin_unlock(&lock);
	kfree(added);
	return user;
}

void user_drop_process(struct user_count *user)
{
	bool last;

	spin_lock(&lock);
	last = --user->processes == 0;
	if (last)
		hash_del(&user->node);
	spin_unlock(&lock);
	if (last)
		kfree(user);
}
