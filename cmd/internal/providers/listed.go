package providers

import (
	"context"
	"maps"
	"slices"
	"sync"

	"lashd/engine/models"
	"lashd/engine/provider/knownmodels"
)

// mostListed is the number of models of one server that Listed returns.
const mostListed = 1000

var _ models.Lister = (*Source)(nil)

// Listed implements models.Lister. It asks servers whose models are not in the table of known models: those of the configuration, those that have
// a key, and those of presets on this machine.
func (s *Source) Listed(ctx context.Context) []models.Model {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.providers)), func(name string) bool { return !s.listsModels(name) })
	ids := make([][]string, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { ids[i] = s.idsOf(ctx, name) })
	}
	wg.Wait()
	var all []models.Model
	for i, name := range names {
		for _, id := range ids[i][:min(len(ids[i]), mostListed)] {
			all = append(all, s.model(name, id))
		}
	}
	return all
}

// listsModels reports whether the server of a provider is worth asking: lashd does not know its models, and has the key that the server needs.
func (s *Source) listsModels(name string) bool {
	p := s.providers[name]
	return p.BaseURL != "" && p.Login == "" && len(knownmodels.Of(catalog(name))) == 0 && (!p.NeedKey || s.cfg.Keys.Has(name, p))
}

// idsOf asks the server of a provider for the ids of its models; none if it gives no list. A server of this machine without settings gets as little time as in FindLocal.
func (s *Source) idsOf(ctx context.Context, name string) []string {
	p := s.providers[name]
	if _, configured := s.cfg.Providers[name]; !configured && presets[name].Local && !s.cfg.Keys.Has(name, p) {
		ctx, cancel := context.WithTimeout(ctx, localLimit)
		defer cancel()
		ids, _ := listModels(ctx, p.BaseURL)
		return ids
	}
	ids, err := s.List(ctx, name)
	if err != nil {
		return nil // the list of models is no place to say why; a call says it
	}
	return ids
}
