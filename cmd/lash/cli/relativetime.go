package cli

import (
	"fmt"
	"os"
	"time"

	"lashd/cmd/internal/console"
)

// span returns a duration in its largest unit, such as "3 min". Negative durations, from a changed clock, are "0 s".
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// moment formats a time in milliseconds: relative to now on a terminal, else in local time. 0 is "-".
func moment(ms int64) string {
	if ms == 0 {
		return "-"
	}
	at := time.UnixMilli(ms)
	switch {
	case !console.Terminal(os.Stdout):
		return at.Format(time.RFC3339)
	case time.Now().Before(at):
		return "in " + span(time.Until(at))
	case time.Since(at) < 10*time.Second:
		return "just now"
	}
	return span(time.Since(at)) + " ago"
}
