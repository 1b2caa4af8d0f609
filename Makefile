# snowflake: a PostgreSQL extension. `make help` lists the targets.

EXTENSION = snowflake
MODULE_big = snowflake
DATA = $(wildcard snowflake--*.sql)

CORE_SOURCES = $(wildcard src/core/*.cpp)
OBJS = $(patsubst %.cpp,%.o,$(CORE_SOURCES) $(wildcard src/pg/*.cpp))

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=snowflake

PG_CPPFLAGS = -I$(srcdir)/src
# 15's headers use `register`, which C++17 no longer knows.
PG_CXXFLAGS = -std=c++17 -Wextra -Wno-register -Wno-unused-parameter $(WERROR)

PG_CONFIG ?= pg_config
# PGXS links a module with the C compiler; ours is C++.
override COMPILER = $(CXX) $(CXXFLAGS)
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# PGXS leaves PG_CXXFLAGS out when it makes bitcode.
COMPILE.cxx.bc += $(PG_CXXFLAGS)
# No header is compiled alone, and PGXS tracks headers only where PostgreSQL itself was built to.
$(OBJS) $(OBJS:.o=.bc): $(wildcard src/*/*.h)
