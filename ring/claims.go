package ring

// Claims are, by the name under which a plan refuses them, the apps that it could read
// at least in part: what they would run, and what they would write. Nothing of them
// is carried out. They tell which apps in force a refused one would take over from, so
// that those serve until it is mended. An app of which nothing could be read claims
// nothing.
type Claims map[string]App

// Refuse has a plan refuse an app, under a name, and keeps what it claims by as much
// of it as was read. The caller takes it out of Apps.
func (p *Plan) Refuse(name string, r *Refusal, read App) {
	if p.Refused == nil {
		p.Refused = map[string]*Refusal{}
	}
	p.Refused[name] = r
	if len(read.Services) == 0 {
		return
	}
	if p.Claims == nil {
		p.Claims = Claims{}
	}
	p.Claims[name] = claimed(&read)
}

// claimed is an app with nothing but what counts while it is refused.
func claimed(a *App) App {
	out := App{Name: a.Name, Source: a.Source, Path: a.Path, DataRoot: a.DataRoot, Volumes: a.Volumes}
	for i := range a.Services {
		s := &a.Services[i]
		out.Services = append(out.Services, Service{
			Name: s.Name, Kind: s.Kind, Replicas: s.Replicas, Share: s.Share,
			Spec: Spec{Image: s.Spec.Image, Mounts: s.Spec.Mounts},
		})
	}
	return out
}
