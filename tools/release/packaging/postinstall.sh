#!/bin/sh
# After installation and upgrade: the system users, and the folder of apps' data where it
# is missing. Nothing is started or restarted. What places files with secrets before the
# engine starts is enabled at the first installation; without a list it does nothing. A hub
# is another user than the daemon: whoever took it over would own this host.
set -e
first=
if ! getent group gitring >/dev/null; then
	groupadd --system gitring
fi
if ! getent passwd gitring >/dev/null; then
	first=yes
	useradd --system --gid gitring --no-create-home --home-dir /var/lib/gitring --shell /usr/sbin/nologin gitring
fi
if ! getent group gitring-hub >/dev/null; then
	groupadd --system gitring-hub
fi
if ! getent passwd gitring-hub >/dev/null; then
	useradd --system --gid gitring-hub --no-create-home --home-dir /var/lib/gitring-hub --shell /usr/sbin/nologin gitring-hub
fi
if ! [ -e /srv/gitring ]; then
	install -d -m 0750 -o gitring -g gitring /srv/gitring
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	if [ -n "$first" ]; then
		systemctl --quiet enable gitring-secrets.service || true
	fi
	if systemctl --quiet is-active gitring.service; then
		echo "gitring: the daemon of before still runs; restart it when you are ready: systemctl restart gitring"
	fi
	if systemctl --quiet is-active gitring-hub.service; then
		echo "gitring: the hub of before still runs; restart it when you are ready: systemctl restart gitring-hub"
	fi
fi
