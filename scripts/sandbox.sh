# shellcheck shell=bash
#
# A sandbox: a directory with a private copy of the PostgreSQL installation, in
# which the extension is installed. Sourced by the scripts that run servers, so
# that they neither need root nor change the system.
#
# It works because PostgreSQL finds its files relative to its own executable: the
# executables are copied, everything else is a symbolic link.

PG_CONFIG=${PG_CONFIG:-pg_config}
read -ra MAKE_OPTIONS <<<"${MAKE_OPTIONS-}"

# PostgreSQL refuses to run as root.
server_user() { if [ "$(id -u)" = 0 ]; then echo postgres; else id -un; fi; }

# Runs a command as the server's user, with none of the caller's environment: a perl
# or python of the caller's own has misled servers before.
as_server()
{
    local -a as_user=()
    if [ "$(id -u)" = 0 ]; then
        as_user=(runuser -u "$(server_user)" --)
    fi
    (
        cd "$SANDBOX" || exit
        exec "${as_user[@]}" env -i HOME="$SANDBOX" LANG=C.UTF-8 TZ=UTC \
            PATH="$SANDBOX_BIN:/usr/bin:/bin:/usr/sbin:/sbin" "$@"
    )
}

# Makes a sandbox of the empty directory SANDBOX, with the extension of the current
# directory, built as MAKE_OPTIONS say, and sets SANDBOX_BIN.
make_sandbox()
{
    local bindir dir
    bindir=$("$PG_CONFIG" --bindir)
    SANDBOX_BIN=$SANDBOX$bindir

    chmod 755 "$SANDBOX"
    mkdir -p "$SANDBOX_BIN"
    cp -a "$bindir/." "$SANDBOX_BIN/"
    for dir in "$("$PG_CONFIG" --pkglibdir)" "$("$PG_CONFIG" --sharedir)"; do
        mkdir -p "$SANDBOX$dir"
        cp -as "$dir/." "$SANDBOX$dir/"
        find "$SANDBOX$dir" -name 'snowflake*' -prune -exec rm -r {} +
    done
    make --silent install DESTDIR="$SANDBOX" PG_CONFIG="$PG_CONFIG" WERROR="${WERROR-}" \
        "${MAKE_OPTIONS[@]}" >/dev/null
    give_to_server "$SANDBOX"
}

# Makes files of the sandbox readable and writable for as_server.
give_to_server()
{
    if [ "$(id -u)" = 0 ]; then
        chown -R "$(server_user):" "$@"
    fi
}

# Stops what runs in the sandbox and removes it.
remove_sandbox()
{
    local pid_file
    while IFS= read -r pid_file; do
        as_server pg_ctl -D "$(dirname "$pid_file")" -m immediate stop >/dev/null 2>&1 || true
    done < <(find "$SANDBOX" -name postmaster.pid 2>/dev/null)
    rm -rf "$SANDBOX"
}
