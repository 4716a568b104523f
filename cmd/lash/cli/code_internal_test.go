package cli

import (
	"testing"

	"lashd/rpc/protocol"
)

func TestInputOfTheCodeShell(t *testing.T) {
	for text, want := range map[string]bool{
		"":                         false,
		"x = 1":                    false,
		"if x:":                    true,
		"if x: # why":              true,
		"if x:\n    y()":           true,
		"if x:\n    y()\n":         false,
		"if x:\n    y()\n  ":       false,
		"x = [1,":                  true,
		"x = [1,\n2]":              false,
		"x = [1,\n":                false,
		"d = {1: 2}":               false,
		"d = {1:":                  true,
		"d = {1:\n2}":              false,
		"print(':')":               false,
		"print('(')":               false,
		`print('\'(')`:             false,
		"x = 1 # (":                false,
		"x = 'a":                   false,
		`x = """a`:                 true,
		"x = '''a\n(':\nb'''":      false,
		"x = 1 + \\":               true,
		"x = 1 + \\\n2":            false,
		"f(a)):":                   true,
		"while True:\n\tx = [1,\n": false,
	} {
		if got := continues(text); got != want {
			t.Errorf("%q continues: %t, want %t", text, got, want)
		}
	}
}

func TestMarkedError(t *testing.T) {
	source := "a = 1\nb = 2\nc = 3\n  d + 1\n"
	for want, r := range map[string]protocol.CodeResult{
		"Error: no":                        {Error: "no"},
		"Error in line 9: no":              {Error: "no", Position: &protocol.CodePosition{Line: 9}},
		"Error in line 1: no\n> 1 | a = 1": {Error: "no", Position: &protocol.CodePosition{Line: 1}},
		"Error in line 1, column 5: no\n> 1 | a = 1\n          ^": {Error: "no", Position: &protocol.CodePosition{Line: 1, Column: 5}},
		"Error in line 4, column 3: no\n  2 | b = 2\n  3 | c = 3\n> 4 |   d + 1\n        ^": {
			Error: "no\n    4 |   d + 1", Position: &protocol.CodePosition{Line: 4, Column: 3},
		},
	} {
		if got := markedError(source, &r); got != want {
			t.Errorf("%+v is shown as\n%s\nwant\n%s", r, got, want)
		}
	}
}
