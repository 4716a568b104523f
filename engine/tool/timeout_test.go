package tool

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lashd/rpc/protocol"
)

// deaf is a provider that blocks in a method that the test selects.
type deaf struct {
	at   atomic.Pointer[string]
	hang chan struct{}
}

func (d *deaf) here(at string) {
	if now := d.at.Load(); now != nil && *now == at {
		<-d.hang
	}
}

func (d *deaf) Tools() []Tool {
	d.here("tools")
	return []Tool{{Manifest: protocol.ToolManifest{Name: "see"}}}
}

func (d *deaf) Contract(string) (protocol.ToolContract, error) {
	d.here("contract")
	return protocol.ToolContract{}, nil
}

func (d *deaf) ResolveName(string) (Tool, bool) { d.here("resolve"); return Tool{}, false }
func (d *deaf) ResolveID(string) (Tool, bool)   { d.here("resolve"); return Tool{}, false }

func (d *deaf) Execute(context.Context, Invocation) (Result, error) { return Result{}, nil }

func TestDeafProviders(t *testing.T) {
	for slot, ask := range map[string]func(*Registry) error{
		"tools":   func(r *Registry) error { return r.Refresh() },
		"resolve": func(r *Registry) error { _, err := r.ResolveName("other"); return err },
		"contract": func(r *Registry) error {
			_, err := r.Catalog().Admit("see", json.RawMessage(`{}`))
			return err
		},
	} {
		t.Run("plugin/TL-01 plugin/HK-28 a provider that does not return from "+slot+" is abandoned and named", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &deaf{hang: make(chan struct{})}
				r := NewRegistry(nil, []Source{{ID: "p", Provider: d}}, protocol.ToolState{})
				d.at.Store(&slot)
				before, began := r.Generation(), time.Now()
				slow, ok := errors.AsType[*SlowError](ask(r))
				if !ok || slow.Source != "p" || slow.Slot != slot || time.Since(began) > 6*time.Second || r.Generation() != before {
					t.Errorf("after %v, at generation %d: %+v", time.Since(began), r.Generation(), slow)
				}
				began = time.Now()
				if again, ok := errors.AsType[*SlowError](ask(r)); !ok || again.Source != "p" || time.Since(began) > 0 {
					t.Errorf("asked again after %v: %+v", time.Since(began), again)
				}
				d.at.Store(nil)
				close(d.hang)
				synctest.Wait()
				if _, err := r.Catalog().Admit("see", json.RawMessage(`{}`)); err != nil {
					t.Errorf("asked again: %v", err)
				}
			})
		})
	}
	t.Run("plugin/TL-16 plugin/HK-28 no lock is held while a catalog is built", func(t *testing.T) {
		var k *Composer
		k = NewComposer(Composition{Base: registry(t, "p", &kit{tools: many(1)}), Extra: func(*Catalog) (any, error) {
			k.Invalidate()
			_, err := k.With(Overlay{})
			return nil, err
		}})
		if _, err := k.Catalog(0); err != nil {
			t.Error(err)
		}
	})
}
