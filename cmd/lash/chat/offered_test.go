package chat

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

// sharedCommands are the commands of the chat and of the extension for VS Code, and examples of their completion.
type sharedCommands struct {
	Both     [][]string
	Terminal []string
	Matches  []struct {
		Names []string
		Typed string
		Want  []string
	}
}

func readShared(t *testing.T) (s sharedCommands) {
	t.Helper()
	raw, err := os.ReadFile("testdata/commands.json")
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCommandsOfAllClients(t *testing.T) {
	s := readShared(t)
	var got []string
	for i := range commands {
		got = append(got, commands[i].names()...)
	}
	want := append(slices.Concat(s.Both...), s.Terminal...)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("part/13 the chat has other commands than testdata/commands.json says (-want +got):\n%s", diff)
	}
	for _, words := range s.Both {
		for _, w := range words[1:] {
			first, _ := commandNamed(words[0])
			if c, exact := commandNamed(w); !exact || c != first {
				t.Errorf("part/13 /%s and /%s are two commands", words[0], w)
			}
		}
	}
	page, err := os.ReadFile("../../../docs/chat.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range want {
		if !strings.Contains(string(page), "`/"+name) {
			t.Errorf("part/13 docs/chat.md does not name /%s", name)
		}
	}
}

func TestCompletionOfCommands(t *testing.T) {
	for _, c := range readShared(t).Matches {
		var list []protocol.CommandInfo
		for _, name := range c.Names {
			list = append(list, protocol.CommandInfo{Name: name})
		}
		var got []string
		for _, choice := range allCommands(list, c.Typed) {
			if name := strings.TrimPrefix(choice.Text, "/"); slices.Contains(c.Names, name) && choice.Says == "" {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, c.Want) {
			t.Errorf("part/13 %q completes to %v, want %v", c.Typed, got, c.Want)
		}
	}
}
