package engine

import (
	"context"
	"fmt"

	"lashd/engine/fact"
	"lashd/engine/turn"
)

// LanguageChangedError means that the executor of a session runs another language than the one that the session's code cells are in.
// The cells in history would mislead the model, and the stored globals cannot be restored.
type LanguageChangedError struct{ settled, described string }

func (e *LanguageChangedError) Error() string {
	return fmt.Sprintf("the code cells of this session are in %s, but the executor runs %s: configure the executor for %[1]s again, or start a new session",
		e.settled, e.described)
}

// settleLanguage takes the language that the executor describes. The first turn of the session that comes here commits it, so that it
// is durable before the model is called; later ones only compare. Another language than the session's is a *LanguageChangedError.
func (p *prompt) settleLanguage(ctx context.Context, described string) error {
	if p.language == "" {
		s := p.seams.store
		err := s.storeWhenSpace(ctx, func(ctx context.Context, st *state) error {
			c := s.change(st)
			settled := fact.CodeLanguage.Settle(&st.stored.facts, c, described)
			c.Then(func() { p.language = settled })
			return s.commit(ctx, st, c)
		})
		if err != nil {
			return err
		}
	}
	if p.described = described; described != p.language {
		return &LanguageChangedError{p.language, described}
	}
	return nil
}

// checkLanguage fails like settleLanguage. A resumed turn has its environment from the journal; it calls this before its next effect,
// because the daemon may have another executor since. A sync effect compares by itself.
func (p *prompt) checkLanguage(ctx context.Context, effect turn.Effect) error {
	if p.language == "" || p.described != "" || effect.Kind == turn.EffectSync {
		return nil
	}
	made, err := p.set.preambleOf(ctx, p.catalog, p.seams.plugins)
	if err != nil || made.Language == "" {
		return err
	}
	return p.settleLanguage(ctx, made.Language)
}

// factsOfParent returns the facts that a child session takes from its parent: the language of code cells, if the child's driver writes
// any. The sessions of one tree write one language.
func (b *sessionDraft) factsOfParent(ctx context.Context) (*fact.Book, error) {
	if b.relation.Parent == "" || !b.writesCode {
		return nil, nil
	}
	row, err := b.eng.store.Session(ctx, b.relation.Parent)
	if err != nil {
		return nil, err
	}
	facts, err := fact.Read(ctx, b.eng.store, row.Key)
	return fact.CodeLanguage.Alone(facts), err
}
