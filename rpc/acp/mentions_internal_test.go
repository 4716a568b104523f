package acp

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/internal/mcpinput"
	"lashd/rpc/protocol"
)

func TestMentionsOfPrompts(t *testing.T) {
	var file struct {
		Known    protocol.MCPResourcesResult
		Examples []struct {
			Text     string
			Mentions []string
		}
	}
	data, err := os.ReadFile("../../internal/mcpinput/testdata/mentions.json")
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil || len(file.Examples) == 0 {
		t.Fatalf("%d examples: %v", len(file.Examples), err)
	}
	const other = "@docs:doc://books/other"
	for _, x := range file.Examples {
		got := []string{}
		blocks := []sdk.ContentBlock{
			sdk.ResourceLinkBlock(other, other),
			sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file:///a", Text: other}}),
			sdk.TextBlock("Look here: \""), sdk.TextBlock(x.Text),
		}
		for _, m := range mcpinput.Resources(writtenText(blocks), &file.Known) {
			got = append(got, m.Server+" "+m.URI)
		}
		if !slices.Equal(got, x.Mentions) {
			t.Errorf("part13/6 a prompt with the text %q mentions %q, want %q", x.Text, got, x.Mentions)
		}
	}
}
