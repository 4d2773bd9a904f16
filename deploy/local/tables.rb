# Runs a script for the HBase shell that only creates and alters tables. It does the same as the shell's commands, without
# what takes most of the shell's start: its other hundred commands, Ruby's packages, and reading line by line.
module Gem
  # All that the shell's own code needs from Ruby's packages.
  module Deprecate
    def deprecate(*); end
  end
end

require 'hbase_constants'

settings = org.apache.hadoop.hbase.HBaseConfiguration.create
ARGV.each { |setting| settings.set(*setting.split('=')) }
connection = org.apache.hadoop.hbase.client.ConnectionFactory.createConnection(settings)
@admin = Hbase::Admin.new(connection)

def create(*arguments)
  @admin.create(*arguments)
end

def alter(table, *changes)
  @admin.alter(table, true, *changes)
end

def create_namespace(*arguments)
  @admin.create_namespace(*arguments)
end

eval($stdin.read)
connection.close
