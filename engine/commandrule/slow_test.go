package commandrule_test

import (
	"strings"
	"testing"
	"time"

	"lashd/engine/commandrule"
)

// TestHostileLines parses lines that are designed to be expensive. The limit is far above their time on a busy machine, and far below
// their time without limits.
func TestHostileLines(t *testing.T) {
	git := commandrule.ParsePrefix("git")
	for _, deep := range []string{"(", "$(", "{ ", "`", "${a:-", "if ", "sh -c ", "sudo -Z ", "xargs ", "eval ", "$((", "((", "parallel ", "((a(", "$((a(", "$(((", "a$((", "watch ", "find -exec ", "timeout ", "[[ (", "a=$((", "\"$((", "<(", "((`", "env -S ", "sudo -Z xargs ", "strace -f eval "} {
		t.Run("outside/6 "+deep, func(t *testing.T) {
			for _, n := range []int{30, 100, 1000, 32<<10/len(deep) - 1, 10 << 20 / len(deep)} {
				began := time.Now()
				line := commandrule.Parse(strings.Repeat(deep, n))
				if line.Covers(git, "", in("/nonexistent")) {
					t.Errorf("%d times: covered", n)
				}
				line.About(git, "", in("/nonexistent"))
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("%d times: took %s", n, took)
				}
			}
		})
	}
}
