#!/bin/sh
# Turns the schema's files, in the order given, into one C array of strings.
set -eu
echo '/* Made from the files in sql/. */'
echo 'static const char *const schema_steps[] = {'
for file; do
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/"&\\n"/' "$file"
	echo ','
done
echo '};'
