// SPDX-License-Identifier: GPL-2.0-only
/*
 * For gcc -pg, which calls mcount() at the start of each function: all arguments and return values
 * in registers must be unchanged. Prints what is wrong, and "good" if nothing is.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

typedef int vector __attribute__((vector_size(16)));

struct pair {
	long one;
	double two;
};

long integers(long a, long b, long c, long d, long e, long f, long g);
double doubles(double a, double b, double c, double d, double e, double f, double g, double h);
double mixed(int count, ...);
vector vectors(vector a, vector b, vector c, vector d);
struct pair pairs(struct pair a, struct pair b);
long double long_doubles(long double a, long double b);
long with_static_chain(long a);
long realigned(long a, long b);

static int wrong;

static void expect(int right, const char *what)
{
	if (right)
		return;
	printf("wrong: %s\n", what);
	wrong = 1;
}

NOINLINE long integers(long a, long b, long c, long d, long e, long f, long g)
{
	return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f + 1000000 * g;
}

NOINLINE double doubles(double a, double b, double c, double d, double e, double f, double g,
			double h)
{
	return a + 10 * b + 100 * c + 1e3 * d + 1e4 * e + 1e5 * f + 1e6 * g + 1e7 * h;
}

/* The number of vector registers is in al. */
NOINLINE double mixed(int count, ...)
{
	double sum = 0, scale = 1;
	va_list arguments;

	va_start(arguments, count);
	for (int i = 0; i < count; i++) {
		sum += scale * va_arg(arguments, int);
		scale *= 10;
		sum += scale * va_arg(arguments, double);
		scale *= 10;
	}
	va_end(arguments);
	return sum;
}

NOINLINE vector vectors(vector a, vector b, vector c, vector d)
{
	return a + 10 * b + 100 * c + 1000 * d;
}

NOINLINE struct pair pairs(struct pair a, struct pair b)
{
	return (struct pair){ a.one + 10 * b.one, a.two + 10 * b.two };
}

NOINLINE long double long_doubles(long double a, long double b)
{
	return a + 10 * b;
}

NOINLINE long with_static_chain(long a)
{
	long local = a * 10;

	NOINLINE long inner(long b)
	{
		return local + b;
	}
	return inner(1) + inner(2);
}

/* With a stack that is more aligned than a call makes it: the arguments' place is in a register. */
NOINLINE long realigned(long a, long b)
{
	__attribute__((aligned(64))) volatile char place[64];

	place[0] = a;
	return ((unsigned long)place & 63) * 1000 + place[0] + 10 * b;
}

#ifdef __i386__
__attribute__((regparm(3))) long in_registers(long a, long b, long c);

NOINLINE __attribute__((regparm(3))) long in_registers(long a, long b, long c)
{
	return a + 10 * b + 100 * c;
}
#endif

int main(void)
{
	vector sum = vectors((vector){ 1, 2, 3, 4 }, (vector){ 5, 6, 7, 8 }, (vector){ 9, 1, 2, 3 },
			     (vector){ 4, 5, 6, 7 });
	struct pair pair = pairs((struct pair){ 1, 2 }, (struct pair){ 3, 4 });

	expect(integers(1, 2, 3, 4, 5, 6, 7) == 7654321, "integers");
	expect(doubles(1, 2, 3, 4, 5, 6, 7, 8) == 87654321, "doubles");
	expect(mixed(4, 1, 2.0, 3, 4.0, 5, 6.0, 7, 8.0) == 87654321, "a variable number");
	expect(sum[0] == 4951 && sum[1] == 5162 && sum[2] == 6273 && sum[3] == 7384, "vectors");
	expect(pair.one == 31 && pair.two == 42, "structures");
	expect(long_doubles(1, 2) == 21, "long doubles");
	expect(with_static_chain(7) == 143, "a static chain");
	expect(realigned(1, 2) == 21, "an aligned stack");
#ifdef __i386__
	expect(in_registers(1, 2, 3) == 321, "registers");
#endif
	if (!wrong)
		puts("good");
	return wrong;
}
