#!/bin/sh
# Before removal, not before an upgrade: daemon and hub are stopped and disabled. Containers
# run on. The users, /etc/gitring, /var/lib/gitring, /var/lib/gitring-hub and /srv/gitring stay.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl --quiet disable --now gitring.service || true
	systemctl --quiet disable gitring-secrets.service || true
	systemctl --quiet disable --now gitring-hub.service || true
fi
