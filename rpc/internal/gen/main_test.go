package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	files, err := generated(root)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join(root, path))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go generate ./rpc", path, err)
		}
	}
}

func TestGeneratedSchemaTakesWhatIsSent(t *testing.T) {
	data, err := os.ReadFile("../../protocol/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, sent := range []struct{ name, value string }{
		{"DecisionRespondParams", `{"decisionId":"dec_1","choice":"answer","value":"yes"}`},
		{"DecisionRespondParams", `{"decisionId":"dec_1","choice":"answer","value":{"branch":["main",1]}}`},
		{"Attachment", `{"type":"image/png","data":"aGVsbG8="}`},
		{"ToolCall", `{"callId":"c","name":"grep","args":{"pattern":"x"}}`},
	} {
		var schema jsonschema.Schema
		if err := json.Unmarshal(data, &schema); err != nil {
			t.Fatal(err)
		}
		schema.Ref = "#/$defs/" + sent.name
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal([]byte(sent.value), &value); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(value); err != nil {
			t.Errorf("%s %s: %v", sent.name, sent.value, err)
		}
	}
}
