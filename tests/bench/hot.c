// SPDX-License-Identifier: GPL-2.0-only
/*
 * One busy function of the program with a million symbols: built once for each HOT, and linked
 * between the others; HOT 0 also has main(), which runs them all for ever.
 */
#define JOIN(a, b) a##b
#define NAME(n)	   JOIN(hot_, n)

unsigned long NAME(HOT)(unsigned long x);

unsigned long NAME(HOT)(unsigned long x)
{
	for (int i = 0; i < 1000000; i++)
		x = x * 6364136223846793005 + 1442695040888963407;
	return x;
}

#if HOT == 0
unsigned long hot_1(unsigned long x);
unsigned long hot_2(unsigned long x);
unsigned long hot_3(unsigned long x);
unsigned long hot_4(unsigned long x);

int main(void)
{
	for (volatile unsigned long x = 1;;)
		x = hot_4(hot_3(hot_2(hot_1(hot_0(x)))));
}
#endif
