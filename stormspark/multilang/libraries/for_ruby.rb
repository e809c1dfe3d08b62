# Licensed under the Apache License, Version 2.0, as the rest of stormspark is.
# Ruby loads this before the child's script, so that `require "./storm"` finds storm.rb if the project has none.

module Kernel
  STORMSPARK_STORM = File.join(__dir__, "storm.rb").freeze

  alias_method :stormspark_require, :require
  def require(name)
    stormspark_require(name)
  rescue LoadError
    raise unless name.to_s.match?(%r{\A(\./)?storm(\.rb)?\z})

    stormspark_require(STORMSPARK_STORM)
  end

  def require_relative(name)
    stormspark_require(File.expand_path(name, File.dirname(caller_locations(1, 1)[0].absolute_path)))
  rescue LoadError
    raise unless name.to_s.match?(%r{\A(\./)?storm(\.rb)?\z})

    stormspark_require(STORMSPARK_STORM)
  end
end
