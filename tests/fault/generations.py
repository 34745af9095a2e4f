"""SQLite's generations as tests see them: how to have small ones."""

# Of a build with -Dsteps=true: a generation closes after so many operations, or so long.
SMALL = {"HAPAX_TEST_GENERATION_OPERATIONS": "12", "HAPAX_TEST_GENERATION_MS": "400"}
