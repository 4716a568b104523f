package config

import (
	"slices"
	"strings"
	"testing"
)

func TestConfigErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"model = 'm'\napproval = 'ask'\n[[models]]\nid = 'x'\n", ""},
		{"trace = true\nmodle = 'm'\n", `line 2: unknown key "modle"; did you mean model?`},
		{"[[models]]\nname = 'a'\nbaseurl = 'x'\n", `line 3: unknown key "models.baseurl"; did you mean base_url?`},
		{"model = \n", "line 1, column 9"},
		{"model = 3\n", "line 1"},
		{"approval = 'alow'\n", "must be allow, ask or deny"},
	} {
		_, err := Parse([]byte(test.text))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("config %q: %v, want %q", test.text, err, test.want)
		}
	}
}

func TestCommandsDoNotGetKeys(t *testing.T) {
	c := Config{KeyEnv: "LLM_AUTH", Models: []ModelConfig{{KeyEnv: "OTHER"}, {}}}
	got := c.Environ([]string{"PATH=/bin", "LLM_AUTH=k1", "OTHER=k2", "OTHERS=x", "EMPTY="})
	if want := []string{"PATH=/bin", "OTHERS=x", "EMPTY="}; !slices.Equal(got, want) {
		t.Errorf("commands get %q, want %q", got, want)
	}
}
