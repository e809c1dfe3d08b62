import no_such.package

Client = no_such.package.Client
