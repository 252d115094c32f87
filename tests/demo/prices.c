/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * prices SOCKET: the shop's service of prices. Each connection has a thread, which answers lines
 * "ITEM" with prices. Now and then another thread loads the catalog anew, with the lock that all
 * need.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef DISCOUNT_STEPS
#define DISCOUNT_STEPS 100
#endif

enum {
	OFFERS = 4000,
	LOADED = 150000
};

struct offer {
	int item;
	double price;
};

static struct offer catalog[OFFERS];
static pthread_mutex_t catalog_lock = PTHREAD_MUTEX_INITIALIZER;

static int compare_prices(const void *a, const void *b)
{
	const struct offer *left = a, *right = b;

	return (left->price > right->price) - (left->price < right->price);
}

static void read_catalog(struct offer *offers, int count)
{
	for (int i = 0; i < count; i++)
		offers[i] = (struct offer){ i % OFFERS, rand() % 10000 / 100. };
}

static void reload_catalog(void)
{
	struct offer *offers = calloc(LOADED, sizeof(*offers));

	pthread_mutex_lock(&catalog_lock);
	read_catalog(offers, LOADED);
	qsort(offers, LOADED, sizeof(*offers), compare_prices);
	memcpy(catalog, offers, sizeof(catalog));
	pthread_mutex_unlock(&catalog_lock);
	free(offers);
}

static void *reload_often(void *unused)
{
	pthread_setname_np(pthread_self(), "reload");
	for (;;) {
		reload_catalog();
		usleep(700 * 1000);
	}
	return unused;
}

static double best_price(int item)
{
	double best = INFINITY;

	for (int i = 0; i < OFFERS; i++)
		if (catalog[i].item % 50 == item % 50 && catalog[i].price < best)
			best = catalog[i].price;
	return best;
}

static double discount(double price)
{
	for (int i = 0; i < DISCOUNT_STEPS; i++)
		price += sin(price) / 1e6;
	return price;
}

static double answer(int item)
{
	double price;

	pthread_mutex_lock(&catalog_lock);
	price = best_price(item);
	pthread_mutex_unlock(&catalog_lock);
	return discount(price);
}

static void *serve(void *argument)
{
	FILE *connection = fdopen((int)(long)argument, "r+");
	char line[64];

	setvbuf(connection, NULL, _IOLBF, BUFSIZ);
	while (fgets(line, sizeof(line), connection)) {
		fseek(connection, 0, SEEK_CUR);
		fprintf(connection, "%.2f\n", answer(atoi(line)));
	}
	fclose(connection);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	pthread_t thread;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[argc - 1]);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 8))
		return 1;
	pthread_create(&thread, NULL, reload_often, NULL);
	for (;;) {
		int connection = accept(listener, NULL, NULL);

		pthread_create(&thread, NULL, serve, (void *)(long)connection);
		pthread_detach(thread);
	}
}
