package plugin

// Spec registers a bundle of contributions.
type Spec func(*Registrar) error

// Register implements Plugin.
func (s Spec) Register(r *Registrar) error { return s(r) }

// Static is a plugin that contributes the same to every session, and has no state.
func Static(id string, spec Spec) Factory {
	return Builder(id, func(BuildContext) (Spec, error) { return spec, nil })
}

// Builder is a plugin without state whose contributions depend on the session.
func Builder(id string, spec func(BuildContext) (Spec, error)) Factory { return builder{id, spec} }

type builder struct {
	id   string
	spec func(BuildContext) (Spec, error)
}

func (b builder) ID() string { return b.id }

func (b builder) Build(ctx BuildContext) (Plugin, error) {
	spec, err := b.spec(ctx)
	return spec, err
}
