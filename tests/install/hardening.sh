#!/bin/sh
# Shows that the program and the shared libraries are hardened, as their ELF files
# say: stack protector, checked calls of libc, addresses that move, tables that are
# read-only once linked, branch targets marked where the processor has that.
#   hardening.sh PROGRAM LIBRARY...
set -eu
failed=0

# want FILE WHAT PATTERN: standard input has a line that matches. At the end of a
# pipe it is a process of its own, and can only say so by its exit code.
want() {
	if ! grep -E "$3" >/dev/null; then
		echo "$1: $2 is missing (no $3)" >&2
		return 1
	fi
}

for file; do
	readelf -W -l "$file" | want "$file" 'RELRO' 'GNU_RELRO' || failed=1
	readelf -W -d "$file" | want "$file" 'BIND_NOW' '\((FLAGS|BIND_NOW)\).*BIND_NOW|FLAGS_1.*NOW' || failed=1
	readelf -W -h "$file" | want "$file" 'position independence' 'Type: +DYN' || failed=1
	readelf -W -l "$file" | want "$file" 'a stack that is not executable' 'GNU_STACK.* RW ' || failed=1
	readelf -W -s "$file" | want "$file" 'the stack protector' '__stack_chk_fail' || failed=1
	readelf -W -s "$file" | want "$file" '_FORTIFY_SOURCE' '__[a-z]+_chk@' || failed=1
	case $(uname -m) in
	# In the code: the linker drops the note where libc's own start files have none.
	x86_64) objdump -d --no-show-raw-insn "$file" | want "$file" 'CET' 'endbr64' || failed=1 ;;
	esac
done
exit $failed
