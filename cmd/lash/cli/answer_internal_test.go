package cli

import (
	"testing"

	"lashd/cmd/lash/markdown"
)

func TestGrowingAnswer(t *testing.T) {
	t.Run("part/12 the end of the unfinished block is one line that fits the terminal", func(t *testing.T) {
		a := answer{markdown.NewStream(markdown.Style{Width: 12}), 12}
		for _, step := range []struct{ text, printed, growing string }{
			{"# He", "", "# He"}, {"ad\n", "# Head\n", ""}, {"- one\n- **two", "", "- two"}, {" three** four", "", "…three four"},
			{"\n\n```\ncode", "- one\n- two three four\n\n──\n", "code"}, {"\n", "code\n", ""},
		} {
			if got := a.add(step.text); got != step.printed {
				t.Errorf("%q prints %q, want %q", step.text, got, step.printed)
			}
			if got := a.growing(); got != step.growing {
				t.Errorf("after %q it shows %q, want %q", step.text, got, step.growing)
			}
		}
		if got := a.end(); got != "──\n" {
			t.Errorf("the end prints %q", got)
		}
	})
}
