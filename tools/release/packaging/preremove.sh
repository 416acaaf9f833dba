#!/bin/sh
# Before removal, not before an upgrade: the daemon is stopped and disabled. Containers
# run on. The user, /etc/gitring, /var/lib/gitring and /srv/gitring stay.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl --quiet disable --now gitring.service || true
	systemctl --quiet disable gitring-secrets.service || true
fi
