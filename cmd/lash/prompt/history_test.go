package prompt_test

import (
	"slices"
	"testing"

	"lashd/cmd/lash/prompt"
	"lashd/rpc/protocol"
)

func TestHistory(t *testing.T) {
	var e prompt.Editor
	for _, text := range []string{"zero", "first\nof two", "one", " two", "two\n"} {
		e.Insert(text)
		e.Take()
	}
	e.Insert("draft")
	for i, want := range []string{"two", "one", "first\nof two", "zero", "zero"} {
		if e.Key("up"); e.Text() != want {
			t.Errorf("part/12 up %d gives %q, want %q", i, e.Text(), want)
		}
	}
	for i, want := range []string{"first\nof two", "one", "two", "draft", "draft"} {
		if e.Key("down"); e.Text() != want {
			t.Errorf("part/12 down %d gives %q, want %q", i, e.Text(), want)
		}
	}
}

func TestHistoryKeepsBlocks(t *testing.T) {
	var e prompt.Editor
	e.Paste(pasted(30))
	e.Take()
	e.Key("up")
	if got := screen(&e); got != "[pasted 30 lines]" || e.Text() != pasted(30) {
		t.Errorf("part/12 it shows %q", got)
	}
}

func TestHistoryOfOtherSessions(t *testing.T) {
	var e prompt.Editor
	e.Insert("mine")
	e.Take()
	e.Insert("draft")
	e.Key("up")
	e.Remember([]string{"newest", "mine", "/etc is full", pasted(30)})
	e.Remember([]string{"newest", "oldest"})
	for i, want := range []string{"newest", "//etc is full", pasted(30), "oldest", "oldest"} {
		if e.Key("up"); e.Text() != want {
			t.Errorf("part/12 up %d gives %q, want %q", i, e.Text(), want)
		}
	}
	for range 5 {
		e.Key("down")
	}
	if e.Text() != "draft" {
		t.Errorf("part/12 the draft has become %q", e.Text())
	}
}

func TestSearchOfTheHistory(t *testing.T) {
	var e prompt.Editor
	for _, text := range []string{"Fix the test", "explain it", "fix the docs", "Fix the test", "test the fix"} {
		e.Insert(text)
		e.Take()
	}
	e.Remember([]string{"an older fix\nof a test"})
	for query, want := range map[string][]string{
		"":         {"test the fix", "Fix the test", "fix the docs", "explain it"},
		"FIX":      {"test the fix", "Fix the test", "fix the docs", "an older fix\nof a test"},
		"test fix": {"test the fix", "Fix the test", "an older fix\nof a test"},
		"nothing":  nil,
	} {
		var got []string
		for _, p := range e.Search(query, 4) {
			got = append(got, p.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("part/12 %q finds %q, want %q", query, got, want)
		}
	}
}

func TestAnEarlierInputReturnsAsItWasTyped(t *testing.T) {
	var e prompt.Editor
	e.Insert("/see ")
	e.Attach(&protocol.Attachment{Name: "a.png", Type: "image/png", Data: []byte("x")})
	e.Take()
	e.SetDraft(e.Search("see", 1)[0].Draft())
	if got := screen(&e); got != "/see [image a.png 1 KB]" || len(e.Files()) != 1 {
		t.Errorf("part/12 it shows %q with %d files", got, len(e.Files()))
	}
}
