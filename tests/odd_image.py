# SPDX-License-Identifier: GPL-2.0-only
"""odd_image.py KIND FILE: makes an ELF file whose call frame information is there to harm who reads
it, maps it, prints "ready" and runs a loop of its code.

KIND: plain: as it should be. zlib-claim, zstd-claim: 1 MiB that claims to be 4 GiB. zlib-long,
zstd-long: inflates to 512 MiB, claims to be 1,000 bytes. zlib-full, zstd-full: 128 MiB of zeros, as it
says. records: 1.9 million records, compressed. cut: its last record is. beyond: the section ends
behind the file. overlap: 1.9 million functions of 256 MiB each. sparse: 5 GiB, nearly all a hole.
names: a gigabyte of section names. torn: these end within a name."""
import ctypes
import os
import struct
import sys
import zlib

MIB = 1 << 20
CODE, SECTION, SHF_COMPRESSED = 0x1000, 0x3000, 0x800


def zlib_zeros(size):
	"""A block of a MiB of zeros that refers to nothing before it, again and again (RFC 1950, 1951)."""
	packer = zlib.compressobj(9, wbits=-15)
	block = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
	adler32 = (size % 65521) << 16 | 1
	return b"\x78\xda" + block * (size // MIB) + b"\x03\0" + struct.pack(">I", adler32)


def zstd_zeros(size):
	"""A frame of blocks that each repeat one byte 128 KiB times (RFC 8878)."""
	count = size >> 17
	blocks = [(i == count - 1) | 1 << 1 | (1 << 17) << 3 for i in range(count)]
	return (struct.pack("<IBB", 0xfd2fb528, 0, 0x38) +
		b"".join(struct.pack("<I", head)[:3] + b"\0" for head in blocks))


def packed(kind, size, stream):
	return struct.pack("<IIQQ", {"zlib": 1, "zstd": 2}[kind], 0, size, 1) + stream


def cie(number):
	body = struct.pack("<I", number) + bytes([1, 0, 1, 0x78, 16, 12, 7, 8, 0x90, 1, 0, 0])
	return struct.pack("<I", len(body)) + body


def eh_frame(count, step, size):
	records = bytearray(cie(0))
	for i in range(count):
		records += struct.pack("<IIQQ", 20, len(records) + 4, 0x2000 + i * step, size)
	return bytes(records)


def debug_frame(count):
	records = bytearray(cie(0xffffffff))
	for i in range(count):
		records += struct.pack("<IIQQ", 20, 0, 0x2000 + i * 16, 16)
	return bytes(records)


def section_of(kind):
	"""(its name, flags, bytes, size or None, size of section names or None)"""
	how, _, what = kind.partition("-")
	zeros = {"zlib": zlib_zeros, "zstd": zstd_zeros}.get(how)
	if what == "claim":
		data = packed(how, 4096 * MIB, zeros(MIB))
	elif what == "long":
		data = packed(how, 1000, zeros(512 * MIB))
	elif what == "full": # random bytes behind it make up a plausible ratio
		data = packed(how, 128 * MIB, zeros(128 * MIB)).ljust(700000, b"\x5a")
	elif kind == "records":
		data = debug_frame(1900000)
		data = packed("zlib", len(data), zlib.compress(data, 1))
	else:
		data = eh_frame(1900000, 1, 256 * MIB) if kind == "overlap" else eh_frame(100, 16, 16)
		size = {"beyond": 64 * MIB, "sparse": 5120 * MIB}.get(kind)
		return (".eh_frame", 0, data[:-8] if kind == "cut" else data, size,
			1000 * MIB if kind == "names" else None)
	return ".debug_frame", SHF_COMPRESSED, data, None, None


def make(kind, path):
	name, flags, data, size, names_size = section_of(kind)
	names = b"\0" + name.encode() + b"\0.shstrtab" + (b"" if kind == "torn" else b"\0")
	names_at = SECTION + (size if kind == "sparse" else len(data)) + 4095 & ~4095
	headers_at = names_at + (names_size or len(names)) + 4095 & ~4095
	parts = {
		0: struct.pack("<16sHHIQQQIHHHHHH", b"\177ELF\2\1\1", 3, 62, 1, CODE, 64, headers_at, 0,
			       64, 56, 1, 64, 3, 2) +
		   struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 1 << 32, 1 << 32, 4096),
		CODE: b"\xeb\xfe" + 4094 * b"\x90", # jmp to itself
		SECTION: data,
		names_at: names,
		headers_at: bytes(64) +
			struct.pack("<IIQQQQIIQQ", 1, 1, flags, 0, SECTION, size or len(data), 0, 0, 1, 0) +
			struct.pack("<IIQQQQIIQQ", 2 + len(name), 3, 0, 0, names_at,
				    names_size or len(names), 0, 0, 1, 0),
	}
	with open(path, "wb") as out:
		for at, part in parts.items():
			out.seek(at)
			out.write(part)
	os.chown(path, 65534, 65534) # a user's


def run(path):
	libc = ctypes.CDLL(None, use_errno=True)
	libc.mmap.restype = ctypes.c_void_p
	libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
	fd = os.open(path, os.O_RDONLY)
	code = libc.mmap(None, 8192, 5, 2, fd, 0) # PROT_READ | PROT_EXEC, MAP_PRIVATE
	# In a thread that runs no Python: the functions of a script would be the rest of its stack.
	thread = ctypes.c_ulong()
	libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(code + CODE), None)
	print("ready", flush=True)
	libc.pthread_join(thread, None)


if __name__ == "__main__":
	make(*sys.argv[1:])
	run(sys.argv[2])
