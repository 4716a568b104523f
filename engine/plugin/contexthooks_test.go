package plugin_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func says(text string) protocol.Message {
	return protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}}
}

func TestTransforms(t *testing.T) {
	transforms := func(id string, priority int, do plugin.ContextTransform) plugin.Factory {
		return with(id, func(r *plugin.Registrar) { r.Context().Transform(priority, do) })
	}
	appends := func(id string, priority int) plugin.Factory {
		return transforms(id, priority, func(_ context.Context, _ *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			pc.Messages[0].Parts[0].Text += id
			return pc, nil
		})
	}
	t.Run("plugin/HK-29 plugin/S-03 transforms run as a pipeline by descending priority and leave the history unchanged", func(t *testing.T) {
		s := open(t, appends("a", 0), appends("b", 5), appends("c", 0), appends("e", -1))
		history := []protocol.Message{says("x")}
		got, err := s.Transform(t.Context(), &plugin.ContextView{}, plugin.PreparedContext{Messages: history})
		if err != nil || got.Messages[0].Parts[0].Text != "xbace" || history[0].Parts[0].Text != "x" || !s.Transforms() || open(t).Transforms() {
			t.Errorf("%+v from %+v, %v", got, history, err)
		}
	})
	t.Run("plugin/HK-01 a failing transform ends the preparation of the turn, and its end is still marked", func(t *testing.T) {
		var marks []string
		s := open(t, appends("a", 0), transforms("b", 5, func(context.Context, *plugin.ContextView, plugin.PreparedContext) (plugin.PreparedContext, error) {
			return plugin.PreparedContext{}, errBoom
		}))
		s.SetProbe(func(mark string) { marks = append(marks, mark) })
		if _, err := s.Transform(t.Context(), &plugin.ContextView{}, plugin.PreparedContext{}); !errors.Is(err, errBoom) {
			t.Errorf("error %v", err)
		}
		if !slices.Equal(marks, []string{"plugin_hook.context_transform.b begin", "plugin_hook.context_transform.b end"}) {
			t.Errorf("%q", marks)
		}
	})
}

func TestCompact(t *testing.T) {
	compacts := func(id string, priority int, asked *[]string, err error, nodes ...protocol.NodeBody) plugin.Factory {
		return with(id, func(r *plugin.Registrar) {
			r.Context().Compactor(priority, func(context.Context, *plugin.CompactRequest) ([]protocol.NodeBody, error) {
				*asked = append(*asked, id)
				return nodes, err
			})
		})
	}
	summary := protocol.NodeBody{Message: new(says("short"))}
	for name, c := range map[string]struct {
		plugins func(asked *[]string) []plugin.Factory
		asked   []string
		by      string
		err     error
	}{
		"the first summary wins and later compactors are not called": {func(asked *[]string) []plugin.Factory {
			return []plugin.Factory{compacts("low", 0, asked, nil, summary), compacts("none", 9, asked, nil), compacts("high", 5, asked, nil, summary)}
		}, []string{"none", "high"}, "high", nil},
		"an error stops the search": {func(asked *[]string) []plugin.Factory {
			return []plugin.Factory{compacts("bad", 9, asked, errBoom, summary), compacts("good", 0, asked, nil, summary)}
		}, []string{"bad"}, "bad", errBoom},
		"no compactor has a summary": {func(asked *[]string) []plugin.Factory { return []plugin.Factory{compacts("none", 0, asked, nil)} }, []string{"none"}, "", nil},
	} {
		t.Run("plugin/HK-30 "+name, func(t *testing.T) {
			var asked []string
			nodes, by, err := open(t, c.plugins(&asked)...).Compact(t.Context(), &plugin.CompactRequest{})
			if !slices.Equal(asked, c.asked) || by != c.by || !errors.Is(err, c.err) || (len(nodes) == 1) != (c.by == "high") {
				t.Errorf("asked %q, by %q, nodes %v, error %v", asked, by, nodes, err)
			}
		})
	}
}

func TestContribute(t *testing.T) {
	contributes := func(id string, hook plugin.CatalogHook) plugin.Factory {
		return with(id, func(r *plugin.Registrar) { r.Catalog().Contribute(hook) })
	}
	t.Run("every catalog hook sees all tools, and their removals are collected in order", func(t *testing.T) {
		hide := func(name string) plugin.CatalogHook {
			return func(_ context.Context, cc *plugin.CatalogContext) ([]string, error) {
				if len(cc.Manifests) != 2 || cc.Manifests[0].Name != "look" {
					t.Errorf("%+v", cc.Manifests)
				}
				cc.Manifests[0].Name = "spoilt"
				return []string{name}, nil
			}
		}
		cc := plugin.CatalogContext{Manifests: []protocol.ToolManifest{{Name: "look"}, {Name: "see"}}}
		got, err := open(t, contributes("a", hide("see")), contributes("b", hide("look"))).Contribute(t.Context(), cc)
		if err != nil || !slices.Equal(got, []string{"see", "look"}) {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("issue/4-2 a removal with ErrForNow counts like the others and is reported", func(t *testing.T) {
		for _, forNow := range []string{"a", "b", ""} {
			leaves := func(id string) plugin.Factory {
				return contributes(id, func(context.Context, *plugin.CatalogContext) ([]string, error) {
					if id == forNow {
						return []string{id}, tool.ErrForNow
					}
					return []string{id}, nil
				})
			}
			got, err := open(t, leaves("a"), leaves("b")).Contribute(t.Context(), plugin.CatalogContext{})
			if !slices.Equal(got, []string{"a", "b"}) || errors.Is(err, tool.ErrForNow) != (forNow != "") {
				t.Errorf("%q for now: %q, %v", forNow, got, err)
			}
		}
	})
	t.Run("issue/4-2 a catalog hook that returns after its context ended is named in the error", func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errBoom)
		defer cancel()
		s := open(t, contributes("a", func(ctx context.Context, _ *plugin.CatalogContext) ([]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		if _, err := s.Contribute(ctx, plugin.CatalogContext{}); !errors.Is(err, errBoom) || err.Error() != "plugin a: tool_catalog: boom" {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a failing catalog hook fails the catalog", func(t *testing.T) {
		s := open(t, contributes("a", func(context.Context, *plugin.CatalogContext) ([]string, error) { panic("clumsy") }))
		if _, err := s.Contribute(t.Context(), plugin.CatalogContext{}); err == nil || err.Error() != "plugin a: tool_catalog: panicked: clumsy" {
			t.Errorf("error %v", err)
		}
	})
}
