package plugin

// Spec is a stateless Plugin given by its Register function.
type Spec func(*Registrar) error

// Register implements Plugin.
func (s Spec) Register(r *Registrar) error { return s(r) }

// Static returns a factory whose plugin contributes the same to every session and has no state.
func Static(id string, spec Spec) Factory {
	return Builder(id, func(BuildContext) (Spec, error) { return spec, nil })
}

// Builder returns a factory whose plugin has no state, and whose contributions depend on the session.
func Builder(id string, spec func(BuildContext) (Spec, error)) Factory { return builder{id, spec} }

// builder is the factory of Builder and Static.
type builder struct {
	id   string
	spec func(BuildContext) (Spec, error)
}

func (b builder) ID() string { return b.id }

func (b builder) Build(ctx BuildContext) (Plugin, error) {
	spec, err := b.spec(ctx)
	return spec, err
}
