from .constraint.curate_pc import curate_pc as curate_pc
from .constraint.em_pc import em_pc as em_pc
from .constraint.laplace_pc import laplace_pc as laplace_pc
from .constraint.laplace_pc import pc as pc
from .constraint.priv_pc import priv_pc as priv_pc
from .constraint.priv_pc import svt_pc as svt_pc
from .datasets.bayesian_networks import Network as Network
from .datasets.bif import from_bif as from_bif
from .datasets.csv_files import read_csv as read_csv
from .datasets.dataset import Dataset as Dataset
from .datasets.draft_schema import draft_schema as draft_schema
from .datasets.draft_schema import (
    draft_schema_from_data_not_private as draft_schema_from_data_not_private,
)
from .datasets.measurements import Measurements as Measurements
from .datasets.parquet_files import read_parquet as read_parquet
from .datasets.published_networks import NETWORKS as NETWORKS
from .datasets.published_networks import load as load
from .datasets.schema import Schema as Schema
from .graphs.cpdag import CPDAG as CPDAG
from .graphs.knowledge import Knowledge as Knowledge
from .graphs.release import Release as Release
from .marginals.edge_confidence import edge_confidence as edge_confidence
from .marginals.epsilon_for import epsilon_for as epsilon_for
from .marginals.fit_network import fit_network as fit_network
from .marginals.hill_climbing import climb as climb
from .marginals.learned_pc import learned_pc as learned_pc
from .marginals.plan import plan as plan
from .marginals.rehearsal import rehearse as rehearse
from .marginals.table_pc import table_pc as table_pc
from .pairwise.anm import anm as anm
from .pairwise.anm import histogram_anm as histogram_anm
from .pairwise.anm import private_anm as private_anm
from .privacy.budget import Budget as Budget
from .privacy.budget import BudgetSpent as BudgetSpent
from .score.noleaks import noleaks as noleaks
from .score.notears import gram_notears as gram_notears
from .score.notears import notears as notears
