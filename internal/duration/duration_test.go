package duration

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Run("issue/21-5 a duration can have days and weeks", func(t *testing.T) {
		for text, want := range map[string]time.Duration{
			"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1d": 24 * time.Hour, "1.5d": 36 * time.Hour, "2w": 14 * 24 * time.Hour,
			"1d12h": 36 * time.Hour, "-1d": -24 * time.Hour, "0": 0,
		} {
			if got, err := Parse(text); err != nil || got != want {
				t.Errorf("%s is %v, %v; want %v", text, got, err, want)
			}
		}
	})
	t.Run("issue/21-5 an error says what is accepted", func(t *testing.T) {
		for _, text := range []string{"", "x", "1", "1 d", "d", "1y", "99999999999999999999w"} {
			if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), "write it as 90s, 10m, 2h, 1d or 2w") {
				t.Errorf("%q is %v, %v; want an error", text, got, err)
			}
		}
	})
}
