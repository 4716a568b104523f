package manifest_test

import (
	"slices"
	"testing"

	"lashd/pluginloader/manifest"
)

func TestAllProblemsAreListed(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"mistakes of decoding and of rules": {
			"{\"name\": \"Bad Name\",\n \"xyzzy\": 1,\n \"version\": 5,\n \"lashd\": {\"process\": {\"command\": [\"p\"]},\n  \"tools\": [{\"name\": \"a b\", \"description\": \"d\"}]}}",
			[]string{
				`plugin.json:1:10: "Bad Name" must be lower-case letters, digits, '.', '_' and '-', at most 64, the first a letter or a digit`,
				`plugin.json:2:2: unknown field "xyzzy"`,
				`plugin.json:3:13: expected string, got number`,
				`plugin.json:5:22: "a b" must be letters, digits, '_' and '-', at most 64, the first a letter or '_'`,
			},
		},
		"what is missing is reported once": {"{\"description\": 1}", []string{`plugin.json:1:1: "name" is missing`, `plugin.json:1:17: expected string, got number`}},
		"a field of the wrong type has no rules between fields": {
			"{\"name\": \"p\",\n \"lashd\": {\"process\": 5, \"hooks\": [\"beforeTurn\"]}}",
			[]string{`plugin.json:2:23: expected object, got number`},
		},
		"no JSON": {"{\"name\": \"Bad Name\",\n", []string{`plugin.json:2:1: unexpected end of JSON`}},
	} {
		t.Run("outside/26 "+name, func(t *testing.T) {
			file, problems := manifest.Parse("plugin.json", []byte(c.text))
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if file != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
