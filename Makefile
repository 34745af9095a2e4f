# A thin front for Meson: meson.build is the one description of the build.
#
#   make            build/hapax and build/libhapax.a
#   make run        installs what is missing, builds, and starts the demo
#   make test       installs what is missing, builds, and runs every test
#   make fuzz       fuzzes each target for FUZZ_SECONDS (default 600)
#   make clean      removes the build folders

BUILD ?= build
FUZZ_SECONDS ?= 600

all: $(BUILD)/build.ninja
	ninja -C $(BUILD) hapax libhapax.a

$(BUILD)/build.ninja:
	@tools/packages build
	meson setup $(BUILD)

run: all
	$(BUILD)/hapax demo

test:
	@tools/packages build test
	tools/test

fuzz:
	@tools/packages build test
	tools/fuzz $(FUZZ_SECONDS)

clean:
	rm -rf build build-*

.PHONY: all run test fuzz clean
