# shellcheck shell=bash
#
# Debian chroots, one for each major version of PostgreSQL. Sourced by the scripts that
# test on other versions than the one at hand. They need root and a kernel that lets
# root mount; can_chroot says why not.
#
# A chroot is made when it is first needed, in a few minutes and 2 GB, and is kept for
# the next time; remove its directory to have a fresh one. What a command in a chroot
# mounts, and every process it leaves behind, is gone when the command ends: it runs in
# mount and process namespaces of its own.

CHROOTS=${SNOWFLAKE_CHROOTS:-/var/cache/snowflake-chroots}

# The release of Debian that has a major version of PostgreSQL.
declare -A SUITE_OF=([15]=bookworm [17]=trixie [18]=forky [19]=experimental)

# These succeed silently, or fail and say what is missing.
can_mount()
{
    if [ "$(id -u)" != 0 ]; then
        echo "needs root"
    elif ! unshare --mount --pid --fork mount -t tmpfs tmpfs /mnt 2>/dev/null; then
        echo "mounting is not allowed here"
    else
        return 0
    fi
    return 1
}

can_chroot()
{
    if ! can_mount; then
        return 1
    elif ! command -v debootstrap >/dev/null && ! scripts/setup chroot >/dev/null 2>&1; then
        echo "debootstrap is missing and could not be installed"
    else
        return 0
    fi
    return 1
}

# Where this machine gets its packages from.
debian_mirror()
{
    local mirror=
    if [ -e /etc/apt/sources.list.d/debian.sources ]; then
        mirror=$(awk '/^URIs:/ { print $2; exit }' /etc/apt/sources.list.d/debian.sources)
    fi
    echo "${mirror:-http://deb.debian.org/debian}"
}

# Makes a chroot of a release of Debian, without PostgreSQL, in the directory $2 if that is not there.
make_root()
{
    local suite=$1 root=$2
    mkdir -p "$(dirname "$root")"
    (
        flock 9
        [ ! -e "$root" ] || exit 0
        echo "making a chroot of Debian $suite in $root"
        # debootstrap may be older than the release
        script=/usr/share/debootstrap/scripts/$suite
        [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
        rm -rf "$root.new"
        nice debootstrap --variant=minbase "$suite" "$root.new" "$(debian_mirror)" "$script" \
            >"$root.log" 2>&1 || { tail -n 20 "$root.log"; exit 1; }
        # proxies and the like
        cp /etc/apt/apt.conf.d/* "$root.new/etc/apt/apt.conf.d/"
        # a chroot that is lost in a power cut is made again
        echo force-unsafe-io >"$root.new/etc/dpkg/dpkg.cfg.d/unsafe-io"
        mkdir -p "$root.new/dev/shm"
        mv "$root.new" "$root"
    ) 9>"$root.lock" >&2
}

# Makes the chroot of a major version if it is not there, and sets CHROOT.
make_chroot()
{
    local suite=${SUITE_OF[$1]-}
    [ -n "$suite" ] || { echo "no release of Debian is known to have PostgreSQL $1" >&2; return 1; }
    CHROOT=$CHROOTS/$suite
    if [ "$suite" = experimental ]; then
        make_root sid "$CHROOT" && take_from_experimental "$1"
    else
        make_root "$suite" "$CHROOT"
    fi
}

# Experimental is no whole release: what is not of that PostgreSQL comes from sid.
take_from_experimental()
{
    [ ! -x "$CHROOT/usr/lib/postgresql/$1/bin/postgres" ] || return 0
    echo "deb $(debian_mirror) experimental main" >"$CHROOT/etc/apt/sources.list.d/experimental.list"
    printf '%s\n' "Package: src:postgresql-$1" 'Pin: release a=experimental' 'Pin-Priority: 600' \
        >"$CHROOT/etc/apt/preferences.d/experimental"
    # shellcheck disable=SC2016
    in_chroot DEBIAN_FRONTEND=noninteractive sh -c 'apt-get -qq update && apt-get -qq install -y \
        --no-install-recommends "postgresql-$0" "postgresql-server-dev-$0" </dev/null' "$1" \
        >"$CHROOT.postgresql.log" 2>&1 || { tail -n 20 "$CHROOT.postgresql.log" >&2; return 1; }
}

# Runs a command in CHROOT. Assignments before the command are its environment. It is made
# the root of all, since who is in a real chroot may have no network of his own.
in_chroot()
{
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child bash -c '
        mount --bind "$0" "$0" && cd "$0" && mount -t proc proc proc &&
            mount -t tmpfs -o mode=1777 tmpfs dev/shm && pivot_root . mnt && umount -l mnt &&
            /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM="${TERM-dumb}" \
                PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
        exit $?' "$CHROOT" "$@"
}

# Puts this machine's PostgreSQL into CHROOT, beside the later one that is there, with the
# extension of the current directory, for tests of pg_upgrade. Fails where it cannot be had.
add_older_postgresql()
{
    local major
    major=$("${PG_CONFIG:-pg_config}" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
    [ -n "${SUITE_OF[$major]-}" ] || return
    make --silent all || return
    if [ ! -x "$CHROOT/usr/lib/postgresql/$major/bin/postgres" ]; then
        echo "deb $(debian_mirror) ${SUITE_OF[$major]} main" >"$CHROOT/etc/apt/sources.list.d/older.list"
        # shellcheck disable=SC2016
        in_chroot DEBIAN_FRONTEND=noninteractive sh -c 'apt-get -qq update &&
            apt-get -qq install -y --no-install-recommends "postgresql-$0" </dev/null' "$major" || return
    fi
    # That release may lack the latest minor version, for which the extension is built here.
    cp -a "/usr/lib/postgresql/$major/." "$CHROOT/usr/lib/postgresql/$major/" &&
        cp -a "/usr/share/postgresql/$major/." "$CHROOT/usr/share/postgresql/$major/" &&
        make --silent install DESTDIR="$CHROOT" >/dev/null
}

# Runs a command in a copy of this machine's root directory that is thrown away when the
# command ends, with a network but without devices. Needs what can_mount tells of.
in_scratch()
{
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child bash -c '
        mount -t tmpfs tmpfs /mnt && mkdir /mnt/upper /mnt/work /mnt/root && cd /mnt &&
            mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work overlay root &&
            mount -t proc proc root/proc && mount -t tmpfs tmpfs root/dev &&
            mkdir -m 1777 root/dev/shm root/tmp -p && ln -s /proc/self/fd root/dev/fd &&
            mknod -m 666 root/dev/null c 1 3 && mknod -m 666 root/dev/zero c 1 5 &&
            mknod -m 666 root/dev/random c 1 8 && mknod -m 666 root/dev/urandom c 1 9 &&
            chroot root /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM="${TERM-dumb}" \
                PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
        exit $?' bash "$@"
}

# Copies the checkout, without what was built in it, to a new directory in CHROOT, and
# prints its name there.
copy_to_chroot()
{
    local dir
    dir=$(mktemp -d "$CHROOT/var/tmp/snowflake.XXXXXX")
    chmod 755 "$dir"
    tar -c --exclude=./.git --exclude=./build --exclude='*.o' --exclude='*.bc' --exclude='*.so' \
        --exclude=./tmp_check --exclude=./results --exclude=./output_iso . |
        tar -x --no-same-owner -C "$dir"
    echo "${dir#"$CHROOT"}"
}
