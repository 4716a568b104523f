package persistence

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPluginFacts(t *testing.T) {
	s := open(t, t.TempDir())
	store := func(facts ...PluginFact) { commit(t, s, &Commit{Facts: facts}) }
	store(PluginFact{Kind: "good", Key: "b", Body: []byte("1")}, PluginFact{Kind: "good", Key: "a", Body: []byte("2")})
	store(PluginFact{Kind: "good", Key: "b", Body: []byte("3")}, PluginFact{Kind: "good", Key: "a"}, PluginFact{Kind: "off", Key: "b", Body: []byte("4")})
	got, err := s.PluginFacts(t.Context())
	want := []PluginFact{{Kind: "good", Key: "b", Body: []byte("3")}, {Kind: "off", Key: "b", Body: []byte("4")}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
