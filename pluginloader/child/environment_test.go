package child

import (
	"slices"
	"testing"
)

func TestEnvironment(t *testing.T) {
	t.Run("issue/4-2 a program gets the standard variables, those that it names, and its own", func(t *testing.T) {
		got := Environment{
			Daemon: []string{"PATH=/usr/bin", "HOME=/home/x", "LC_ALL=C", "TOKEN=secret", "WANTED=yes", "TZ=UTC"},
			Pass:   []string{"WANTED"}, Set: map[string]string{"PATH": "/a", "TZ": "Z", "OWN": "1"}, Root: "/root", Data: "/data",
		}.List()
		want := []string{"HOME=/home/x", "LC_ALL=C", "OWN=1", "PATH=/a", "TZ=Z", "WANTED=yes", "PYTHONDONTWRITEBYTECODE=1", "PLUGIN_ROOT=/root", "CLAUDE_PLUGIN_ROOT=/root", "PLUGIN_DATA=/data"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
