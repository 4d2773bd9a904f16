# Lists, moves and splits regions for as long as there is input: a line is a command, and its answer are lines up to one
# that is "done", or "failed" and why. Starting the shell for each would take seconds. See regions.py.
#
#   list [PREFIX]      encoded name, table, start and end in hex, server or "-" of each region of such tables and of meta
#   servers            the names of all servers that are known to be alive
#   move NAME SERVER   move this region there, and wait until it is open
#   split NAME KEY     split this region before the row with this key in hex, and wait until both parts are open

require 'java'

java_import org.apache.hadoop.hbase.ServerName
java_import org.apache.hadoop.hbase.TableName
java_import org.apache.hadoop.hbase.util.Bytes
java_import java.util.concurrent.TimeUnit

settings = org.apache.hadoop.hbase.HBaseConfiguration.create
ARGV.each { |setting| settings.set(*setting.split('=')) }
connection = org.apache.hadoop.hbase.client.ConnectionFactory.createConnection(settings)
admin = connection.getAdmin
WAIT_S = 20

def hex(key)
  String.from_java_bytes(key).unpack1('H*')
end

list = lambda do |prefix = ''|
  names = admin.listTableNames.map(&:getNameAsString).select { |name| name.start_with?(prefix) }
  (names + ['hbase:meta']).each do |name|
    locator = connection.getRegionLocator(TableName.valueOf(name))
    locator.getAllRegionLocations.each do |place|
      region = place.getRegion
      server = place.getServerName || '-'
      puts [region.getEncodedName, name, hex(region.getStartKey), hex(region.getEndKey), server].join("\t")
    end
    locator.close
  end
end

servers = lambda { admin.getRegionServers.each { |server| puts server } }

move = lambda { |name, server| admin.move(Bytes.toBytes(name), ServerName.valueOf(server)) }

split = lambda do |name, key|
  admin.splitRegionAsync(Bytes.toBytes(name), [key].pack('H*').to_java_bytes).get(WAIT_S, TimeUnit::SECONDS)
end

commands = { 'list' => list, 'servers' => servers, 'move' => move, 'split' => split }

$stdout.sync = true
puts 'done'
$stdin.each_line do |line|
  name, *arguments = line.split
  begin
    commands.fetch(name).call(*arguments)
    puts 'done'
  rescue Exception => error
    puts "failed #{error.message.to_s.tr("\n", ' ')}"
  end
end
connection.close
