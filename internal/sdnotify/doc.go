// Package sdnotify tells systemd, or whatever else started a service with NOTIFY_SOCKET, how it is: sd_notify(3) and the
// watchdog of sd_watchdog_enabled(3), as far as a provider needs them.
package sdnotify
