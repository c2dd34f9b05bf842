from .constraint.curate_pc import curate_pc as curate_pc
from .constraint.em_pc import em_pc as em_pc
from .constraint.laplace_pc import laplace_pc as laplace_pc, pc as pc
from .constraint.priv_pc import priv_pc as priv_pc, svt_pc as svt_pc
from .datasets.bayesian_networks import (
    NETWORKS as NETWORKS,
    Network as Network,
    from_bif as from_bif,
    load as load,
)
from .datasets.columns import check_rows_per_person as check_rows_per_person
from .datasets.counts import Counts as Counts
from .datasets.csv_files import read_csv as read_csv
from .datasets.dataset import Dataset as Dataset
from .datasets.parquet_files import read_parquet as read_parquet
from .datasets.schema import (
    Schema as Schema,
    draft_schema as draft_schema,
    draft_schema_from_data_not_private as draft_schema_from_data_not_private,
    draft_schema_from_public_table as draft_schema_from_public_table,
)
from .graphs.check_ledger import check_ledger as check_ledger
from .graphs.cpdag import CPDAG as CPDAG
from .graphs.knowledge import Knowledge as Knowledge
from .graphs.release import Release as Release
from .pairwise.anm import anm as anm, histogram_anm as histogram_anm, private_anm as private_anm
from .privacy.account_file import open_account as open_account
from .privacy.budget import Budget as Budget, BudgetSpent as BudgetSpent
from .reading.effects import effect as effect, effects as effects
from .reading.fit_network import fit_network as fit_network
from .reading.hill_climbing import climb as climb
from .reading.release import (
    MarginalRelease as MarginalRelease,
    read as read,
    read_release as read_release,
    reread as reread,
)
from .score.noleaks import noleaks as noleaks
from .score.notears import gram_notears as gram_notears, notears as notears
from .tables.check_receipt import check_receipt as check_receipt
from .tables.door import (
    check_files as check_files,
    read_table as read_table,
    release_once as release_once,
)
from .tables.plan import epsilon_for as epsilon_for, plan as plan
from .tables.private_graph import (
    dag_posterior as dag_posterior,
    graph_from_moments as graph_from_moments,
    private_graph as private_graph,
)
from .tables.rehearsal import rehearse as rehearse
from .tables.table_pc import table_pc as table_pc
