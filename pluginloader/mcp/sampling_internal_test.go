package mcp

//lint:file-ignore SA1019 servers of the versions that lashd begins with use sampling

import (
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestHostileSampling(t *testing.T) {
	l := &life{server: &server{end: &endpoint{label: "x"}}}
	say := func(role sdk.Role, n int) *sdk.CreateMessageWithToolsParams {
		p := &sdk.CreateMessageWithToolsParams{}
		for range n {
			p.Messages = append(p.Messages, &sdk.SamplingMessageV2{Role: role, Content: []sdk.Content{&sdk.TextContent{}}})
		}
		return p
	}
	for want, p := range map[string]*sdk.CreateMessageWithToolsParams{
		`the role "system" is neither user nor assistant`: say("system", 1),
		"the request has 501 messages, more than 500":     say("user", 501),
		"the request has 90000 messages, more than 500":   say("assistant", 90000),
	} {
		if _, err := l.sampled(t.Context(), nil, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("part13/6 a sampling request of %d messages of the role %s: %v, want %q", len(p.Messages), p.Messages[0].Role, err, want)
		}
	}
}
