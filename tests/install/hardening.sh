#!/bin/sh
# Shows that the program and the shared libraries are hardened, as their ELF files
# say: stack protector, checked calls of libc, addresses that move, tables that are
# read-only once linked, branch targets marked where the processor has that.
#   hardening.sh PROGRAM LIBRARY...
set -eu
failed=0

# want FILE WHAT PATTERN: standard input has a line that matches.
want() {
	if ! grep -Eq "$3"; then
		echo "$1: $2 is missing (no $3)" >&2
		failed=1
	fi
}

for file; do
	readelf -W -l "$file" | want "$file" 'RELRO' 'GNU_RELRO'
	readelf -W -d "$file" | want "$file" 'BIND_NOW' '\((FLAGS|BIND_NOW)\).*BIND_NOW|FLAGS_1.*NOW'
	readelf -W -h "$file" | want "$file" 'position independence' 'Type: +DYN'
	readelf -W -l "$file" | want "$file" 'a stack that is not executable' 'GNU_STACK.* RW '
	readelf -W -s "$file" | want "$file" 'the stack protector' '__stack_chk_fail'
	readelf -W -s "$file" | want "$file" '_FORTIFY_SOURCE' '__[a-z]+_chk@'
	case $(uname -m) in
	x86_64) readelf -W -n "$file" | want "$file" 'CET' 'IBT.*SHSTK|SHSTK.*IBT' ;;
	esac
done
exit $failed
