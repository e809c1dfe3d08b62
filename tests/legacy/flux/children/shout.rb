require "./storm"

class Shout < Storm::Bolt
  def process(tup)
    emit([tup.values[0].upcase], :anchor => tup)
    ack(tup)
  end
end

Shout.new.run
