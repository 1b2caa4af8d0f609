# snowflake: a PostgreSQL extension. `make help` lists the targets.

EXTENSION = snowflake
# of the release; that of the SQL objects is in the control file
EXTVERSION := $(shell sed -nE 's/^    "version": "(.*)",/\1/p' META.json)
MODULE_big = snowflake

# Scripts of released versions stay as they are. Those of the next one are put together from
# parts: what install and upgrade share can be run over what is there (CREATE OR REPLACE).
# CONTRIBUTING.md, "A change of SQL objects", says more.
DATA = snowflake--1.0.sql
DATA_built = snowflake--1.1.sql snowflake--1.0--1.1.sql

SQL_TABLES = src/lease/tables.sql
SQL_SHARED = src/plan/time_predicates.sql src/read/decode.sql src/read/text_format.sql \
	src/read/layouts.sql src/lease/replication.sql src/lease/generators.sql src/lease/registry.sql \
	src/draw/nextval.sql src/adopt/convert.sql src/adopt/revert.sql src/watch/views.sql

# The client of shared registries is a module of its own, for the few processes that need libpq.
CLIENT = snowflake_libpq
CLIENT_OBJS = $(patsubst %.cpp,%.o,$(wildcard src/libpq/*.cpp))

OBJS = $(filter-out $(CLIENT_OBJS),$(patsubst %.cpp,%.o,$(wildcard src/*.cpp src/*/*.cpp)))

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=snowflake
ISOLATION = $(patsubst specs/%.spec,%,$(sort $(wildcard specs/*.spec)))
ISOLATION_OPTS = --load-extension=snowflake

EXTRA_CLEAN = $(CLIENT_OBJS) $(CLIENT)$(DLSUFFIX) build regression.diffs regression.out results output_iso log tmp_check

PG_CPPFLAGS = -I$(srcdir)/src -I$(libpq_srcdir) -DSNOWFLAKE_VERSION='"$(EXTVERSION)"'
# Nothing of the C++ library is used, so that no session has to load it.
SHLIB_LINK = $(if $(filter linux,$(PORTNAME)),-Wl$(comma)--as-needed)
comma = ,
# 15's headers use `register`, which C++17 no longer knows.
# Hidden: calls within the library go straight, and nothing of it can meet another library's.
PG_CXXFLAGS = -std=c++17 -fno-exceptions -fno-rtti -fvisibility=hidden -Wextra -Wno-register -Wno-unused-parameter $(WERROR)
# clang does not know each flag and attribute of a PostgreSQL that was built with gcc.
PG_CXXFLAGS += $(if $(findstring clang,$(CXX)),-Wno-unknown-warning-option -Wno-ignored-attributes)

PG_CONFIG ?= pg_config
export PG_CONFIG

# These install what they need, PostgreSQL included, so they must not need PGXS.
SELF_SUFFICIENT = help setup check check-unit check-tsan check-asan check-regress \
	check-isolation check-tap check-all check-majors check-packages chaos \
	check-server-sanitizers check-valgrind check-cassert check-newcomer check-fuzz simulate check-mutants \
	lint format dist demo demo-stop bench reference

GOALS = $(or $(MAKECMDGOALS),all)

ifneq (,$(filter-out $(SELF_SUFFICIENT),$(GOALS)))
# PGXS links a module with the C compiler; ours is C++.
override COMPILER = $(CXX) $(CXXFLAGS)
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq (,$(wildcard $(PGXS)))
$(error PostgreSQL's build system was not found: try `make setup`, or set PG_CONFIG)
endif
# which the client's packages of Debian lack
ifneq (,$(filter all install,$(GOALS)))
ifeq (,$(wildcard $(shell $(PG_CONFIG) --includedir-server)/postgres.h))
$(error the headers of PostgreSQL's server were not found: try `make setup`, or set PG_CONFIG)
endif
endif
include $(PGXS)

snowflake--1.1.sql: src/install.sql $(SQL_TABLES) $(SQL_SHARED) src/privileges.sql
snowflake--1.0--1.1.sql: src/upgrade/1.0--1.1.sql $(SQL_SHARED) src/upgrade/1.0--1.1.privileges.sql
$(DATA_built):
	{ for part in $^; do echo "-- $$part"; cat "$$part"; echo; done; } > $@

# Another extension has the same name, see doc/migrating.md.
install: not-over-another
.PHONY: not-over-another
not-over-another:
	@control='$(DESTDIR)$(datadir)/extension/snowflake.control'; \
	if [ -z '$(OVERWRITE)' ] && [ -e "$$control" ] && ! grep -q 'time-ordered 64-bit' "$$control"; then \
		echo "$$control belongs to another extension named snowflake:" \
			'see doc/migrating.md, then use `make install OVERWRITE=1`' >&2; \
		exit 1; \
	fi

all: $(CLIENT)$(DLSUFFIX)
$(CLIENT)$(DLSUFFIX): $(CLIENT_OBJS)
	$(LINK.shared) -o $@ $^ $(LDFLAGS) $(LDFLAGS_SL) $(libpq) $(SHLIB_LINK)

install: install-client
install-client: $(CLIENT)$(DLSUFFIX) installdirs
	$(INSTALL_SHLIB) $(CLIENT)$(DLSUFFIX) '$(DESTDIR)$(pkglibdir)/'

uninstall: uninstall-client
uninstall-client:
	rm -f '$(DESTDIR)$(pkglibdir)/$(CLIENT)$(DLSUFFIX)'
.PHONY: install-client uninstall-client

# PGXS leaves PG_CXXFLAGS out when it makes bitcode.
COMPILE.cxx.bc += $(PG_CXXFLAGS)
# No header is compiled alone, and PGXS tracks headers only where PostgreSQL itself was built to.
$(OBJS) $(OBJS:.o=.bc) $(CLIENT_OBJS): $(wildcard src/*/*.h)
endif

ifneq (,$(filter $(SELF_SUFFICIENT),$(GOALS)))
.PHONY: $(SELF_SUFFICIENT)

help:
	@echo 'make                  build the extension for the PostgreSQL that $$PG_CONFIG belongs to'
	@echo 'make install          install it there (as root, where that needs root)'
	@echo 'make installcheck     run the regression and isolation tests on a running server'
	@echo 'make clean            remove what was built'
	@echo
	@echo 'make demo             try it: a throw-away server, tables with IDs, what they look like'
	@echo 'make demo-stop        stop that server and remove it'
	@echo
	@echo 'make check            all tests, with servers of their own; nothing is installed in the system'
	@echo 'make check-unit       tests of the core, without a server   [UNIT_FILTER=Lease*]'
	@echo 'make check-tsan       the same with the thread sanitizer'
	@echo 'make check-asan       the same with the address and undefined-behaviour sanitizers'
	@echo 'make check-regress    regression tests, without and with preloading'
	@echo 'make check-isolation  isolation tests'
	@echo 'make check-tap        tests with whole servers              [T=t/010_x.pl] [KEEP=1]'
	@echo 'make check-all        all tests on all versions of PostgreSQL, in Debian chroots where needed'
	@echo '                      (made at first use, as root; kept in $$SNOWFLAKE_CHROOTS)'
	@echo 'make check-majors     build and regression tests on all versions   [MAJORS="17 18"] [PARTS=regress] [T=]'
	@echo 'make check-newcomer   what the README tells to do, on clean Debians (chroots, as root) [CASES="server"]'
	@echo 'make check-packages   the release archive and the Debian package: made, installed, used'
	@echo 'make simulate         many servers in one process, while everything goes wrong'
	@echo '                                                    [EVENTS=n] [SEEDS=n] [SEED=x to replay]'
	@echo 'make check-mutants    see that the simulation finds the faults planted in it'
	@echo 'make check-fuzz       fuzz what reads text                  [FUZZ_SECONDS=60, of each]'
	@echo 'make chaos            servers and all that may happen to them    [MINUTES=2] [SEED=n]'
	@echo 'make check-server-sanitizers   regression tests and random calls, all under sanitizers'
	@echo 'make check-valgrind   a short run of a server under valgrind'
	@echo 'make check-cassert    tests on a PostgreSQL with assertions, built from Debian'"'"'s source   [T=...]'
	@echo 'make bench            what IDs cost, beside sequences and UUIDs  [SCALE=1] [GROUPS="calls core"]'
	@echo 'make lint             formatting and static analysis'
	@echo 'make format           format the C++ sources'
	@echo 'make reference        write doc/reference.md from the catalog'
	@echo 'make dist             the release archive of what is committed, in build/'
	@echo 'make setup            install what all of these need, from Debian packages'

setup:
	@scripts/setup build test clients monitoring fuzz demo lint

check:
	@scripts/check

check-unit check-tsan check-asan check-regress check-isolation check-tap: check-%:
	@scripts/check $*

check-all:
	@scripts/check-majors

check-majors:
	@PARTS='$(or $(PARTS),regress)' T='$(T)' scripts/check-majors $(MAJORS)

# The simulation of the core: deterministic, without a server.
simulate check-mutants:
	@scripts/setup build
	@$(MAKE) --silent --no-print-directory -f test/simulate/Makefile $@

check-fuzz:
	@scripts/setup build fuzz
	@test/fuzz/run.sh $(or $(FUZZ_SECONDS),60)

check-packages:
	@scripts/check-packages

dist:
	@mkdir -p build
	git archive --format=zip --prefix=$(EXTENSION)-$(EXTVERSION)/ \
		-o build/$(EXTENSION)-$(EXTVERSION).zip HEAD

lint format:
	@scripts/lint $@

chaos:
	@scripts/check chaos

check-newcomer:
	@scripts/check-newcomer $(CASES)

check-server-sanitizers check-valgrind check-cassert reference:
	@scripts/$@

bench:
	@bench/run $(GROUPS)

demo:
	@scripts/demo start

demo-stop:
	@scripts/demo stop
endif

# For scripts: the value of a variable.
print-%:
	@echo $($*)
